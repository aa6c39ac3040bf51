// form: di_file, di_compile_unit, di_subprogram, di_lexical_block, di_loc
// CHECK: #di_file = #cuda_tile.di_file<"k.py" in "/src">
// CHECK-NEXT: #di_compile_unit = #cuda_tile.di_compile_unit<file = #di_file>
// CHECK-NEXT: #di_subprogram = #cuda_tile.di_subprogram<file = #di_file, line = 7, name = "kernel", linkageName = "k", compileUnit = #di_compile_unit, scopeLine = 8>
// CHECK-NEXT: #di_lexical_block = #cuda_tile.di_lexical_block<scope = #di_subprogram, file = #di_file, line = 9, column = 2>
#where = #cuda_tile.di_file<"k.py" in "/src">
#unit = #cuda_tile.di_compile_unit<file = #where>
#function = #cuda_tile.di_subprogram<
  file = #where, line = 7, name = "kernel", linkageName = "k", compileUnit = #unit, scopeLine = 8
>
#block = #cuda_tile.di_lexical_block<scope = #function, file = #where, line = 9, column = 2>
#at = loc("/src/k.py":10:3)
#inside = #cuda_tile.di_loc<#at in #block>
#outside = #cuda_tile.di_loc<loc("/src/k.py":7:1) in #function>
cuda_tile.module @m {
  entry @k(%x: tile<f32>) {
    // CHECK: %a = addf %x, %x : tile<f32> loc(#cuda_tile.di_loc<loc("/src/k.py":10:3) in #di_lexical_block>)
    %a = addf %x, %x : tile<f32> loc(#inside)
    // CHECK: %b = addf %x, %x : tile<f32> loc(callsite(#cuda_tile.di_loc<loc("/src/k.py":10:3) in #di_lexical_block> at #cuda_tile.di_loc<loc("/src/k.py":7:1) in #di_subprogram>))
    %b = addf %x, %x : tile<f32> loc(callsite(#inside at #outside))
    return loc(unknown)
  } loc(#outside)
}
