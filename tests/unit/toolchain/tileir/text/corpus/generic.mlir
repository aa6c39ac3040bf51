// form: the generic form of operations, of modules, entries and globals too
// CHECK: cuda_tile.module @m attributes {producer = "by hand"} {
"builtin.module"() ({
  "cuda_tile.module"() <{producer = "by hand", sym_name = "m"}> ({
    // CHECK: global private constant @g alignment = 16 <f32: [1.000000e+00, 2.000000e+00]> : tile<2xf32>
    "cuda_tile.global"() <{alignment = 16 : i64, constant, sym_name = "g", sym_visibility = "private", value = dense<[1.0, 2.0]> : !cuda_tile.tile<2xf32>}> : () -> ()
    // CHECK: entry @k(%x: tile<f32>, %n: tile<i32>, %c: tile<i1>) optimization_hints=<sm_90 = {occupancy = 2}> {
    "cuda_tile.entry"() <{arg_attrs = [], function_type = (!cuda_tile.tile<f32>, !cuda_tile.tile<i32>, !cuda_tile.tile<i1>) -> (), optimization_hints = #cuda_tile.optimization_hints<sm_90 = {occupancy = 2}>, sym_name = "k"}> ({
    ^bb0(%x: !cuda_tile.tile<f32>, %n: !cuda_tile.tile<i32>, %c: !cuda_tile.tile<i1>):
      // CHECK: %a = addf %x, %x rounding<zero> flush_to_zero : tile<f32>
      %a = "cuda_tile.addf"(%x, %x) <{flush_to_zero, rounding_mode = #cuda_tile.rounding<zero>}> : (!cuda_tile.tile<f32>, !cuda_tile.tile<f32>) -> !cuda_tile.tile<f32>
      // CHECK: %b = addf %x, %x : tile<f32>
      %b = "cuda_tile.addf"(%x, %x) : (!cuda_tile.tile<f32>, !cuda_tile.tile<f32>) -> !cuda_tile.tile<f32>
      // CHECK: %d = cmpi less_than %n, %n, signed : tile<i32> -> tile<i1>
      %d = "cuda_tile.cmpi"(%n, %n) {comparison_predicate = #cuda_tile.comparison_predicate<less_than>, signedness = #cuda_tile.signedness<signed>} : (!cuda_tile.tile<i32>, !cuda_tile.tile<i32>) -> !cuda_tile.tile<i1>
      // CHECK: %e = constant <i32: [1, 2]> : tile<2xi32>
      %e = "cuda_tile.constant"() <{value = dense<[1, 2]> : !cuda_tile.tile<2xi32>}> : () -> !cuda_tile.tile<2xi32>
      // CHECK: %f = get_global @g : tile<ptr<f32>>
      %f = "cuda_tile.get_global"() <{global_name = @g}> : () -> !cuda_tile.tile<!cuda_tile.ptr<f32>>
      // CHECK: %g, %h = load_ptr_tko relaxed device %f : tile<ptr<f32>> -> tile<f32>, token
      %g, %h = "cuda_tile.load_ptr_tko"(%f) <{memory_ordering_semantics = 1 : i32, memory_scope = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!cuda_tile.tile<!cuda_tile.ptr<f32>>) -> (!cuda_tile.tile<f32>, !cuda_tile.token)
      // CHECK: %i = assume div_by<16>, %n : tile<i32>
      %i = "cuda_tile.assume"(%n) <{predicate = #cuda_tile.div_by<16>}> : (!cuda_tile.tile<i32>) -> !cuda_tile.tile<i32>
      // CHECK: %j = reduce %e dim=0 identities=[0 : i32] : tile<2xi32> -> tile<i32>
      %j = "cuda_tile.reduce"(%e) <{dim = 0 : i32, identities = [0 : i32]}> ({
      // CHECK-NEXT: (%k: tile<i32>, %l: tile<i32>) {
      ^bb0(%k: !cuda_tile.tile<i32>, %l: !cuda_tile.tile<i32>):
        %m = "cuda_tile.addi"(%k, %l) <{overflow = #cuda_tile.overflow<none>}> : (!cuda_tile.tile<i32>, !cuda_tile.tile<i32>) -> !cuda_tile.tile<i32>
        "cuda_tile.yield"(%m) : (!cuda_tile.tile<i32>) -> ()
      }) : (!cuda_tile.tile<2xi32>) -> !cuda_tile.tile<i32>
      // CHECK: if %c {
      "cuda_tile.if"(%c) ({
        "cuda_tile.yield"() : () -> ()
      }, {
      }) : (!cuda_tile.tile<i1>) -> ()
      "cuda_tile.return"() : () -> () loc("k.py":3:4)
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
