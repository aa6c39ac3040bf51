// Tuples and coordinates
// Values of the algebra and numbers of the kernel, sizes, arithmetic, conversions.

func.func @static() {
  %r = cute.static : !cute.layout<"(6,8):(8,1)">
  func.return
}

func.func @get_scalars(%a: !cute.shape<"(?,64)">) {
  %r = cute.get_scalars<{only_dynamic}> (%a) : !cute.shape<"(?,64)">
  func.return
}

func.func @make_int_tuple(%a: i32) {
  %r = cute.make_int_tuple(%a) : (i32) -> !cute.int_tuple<"(?,2)">
  func.return
}

func.func @make_shape(%a: i32) {
  %r = cute.make_shape(%a) : (i32) -> !cute.shape<"(?,64)">
  func.return
}

func.func @make_stride(%a: i32) {
  %r = cute.make_stride(%a) : (i32) -> !cute.stride<"(?,1)">
  func.return
}

func.func @make_coord(%a: i32) {
  %r = cute.make_coord(%a) : (i32) -> !cute.coord<"(?,_)">
  func.return
}

func.func @make_tile(%a: i32) {
  %r = cute.make_tile(%a) : (i32) -> !cute.tile<"[?:1;_]">
  func.return
}

func.func @equal(%a: !cute.shape<"(?,64)">, %b: !cute.shape<"(128,64)">) {
  %r = cute.equal(%a, %b) : (!cute.shape<"(?,64)">, !cute.shape<"(128,64)">) -> i1
  func.return
}

func.func @elem_less(%a: !cute.coord<"(?,3)">, %b: !cute.shape<"(?,64)">) {
  %r = cute.elem_less(%a, %b) : (!cute.coord<"(?,3)">, !cute.shape<"(?,64)">) -> i1
  func.return
}

func.func @get_leaves(%a: !cute.shape<"(?,(2,3))">) {
  %x, %y, %z = cute.get_leaves(%a) : !cute.shape<"(?,(2,3))">
  func.return
}

func.func @get_layouts_from_tile(%a: !cute.tile<"[4:1;_;(2,3):(3,1)]">) {
  %x, %y = cute.get_layouts_from_tile(%a) : <"[4:1;_;(2,3):(3,1)]">
  func.return
}

func.func @print(%a: !cute.layout<"(?,64):(64,1)">) {
  cute.print(%a) : !cute.layout<"(?,64):(64,1)">
  func.return
}

func.func @get(%a: !cute.layout<"(6,8):(8,1)">) {
  %r = cute.get<[1]> (%a) : !cute.layout<"(6,8):(8,1)"> -> !cute.layout<"8:1">
  func.return
}

func.func @select(%a: !cute.layout<"(6,8):(8,1)">) {
  %r = cute.select<[1, 0]> (%a) : !cute.layout<"(6,8):(8,1)"> -> !cute.layout<"(8,6):(1,8)">
  func.return
}

func.func @size(%a: !cute.layout<"(6,8):(8,1)">) {
  %r = cute.size (%a) : (!cute.layout<"(6,8):(8,1)">) -> !cute.int_tuple<"48">
  func.return
}

func.func @cosize(%a: !cute.layout<"(6,8):(8,1)">) {
  %r = cute.cosize (%a) : (!cute.layout<"(6,8):(8,1)">) -> !cute.int_tuple<"48">
  func.return
}

func.func @rank(%a: !cute.layout<"(6,8):(8,1)">) {
  %r = cute.rank (%a) : (!cute.layout<"(6,8):(8,1)">) -> !cute.int_tuple<"2">
  func.return
}

func.func @depth(%a: !cute.layout<"((2,3),4):((4,8),1)">) {
  %r = cute.depth (%a) : (!cute.layout<"((2,3),4):((4,8),1)">) -> !cute.int_tuple<"2">
  func.return
}

func.func @tuple_product(%a: !cute.shape<"(2,(3,4))">) {
  %r = cute.tuple_product(%a) : (!cute.shape<"(2,(3,4))">) -> !cute.shape<"24">
  func.return
}

func.func @tuple_product_each(%a: !cute.shape<"(2,(3,4))">) {
  %r = cute.tuple_product_each(%a) : (!cute.shape<"(2,(3,4))">) -> !cute.shape<"(2,12)">
  func.return
}

func.func @crd2idx(%a: !cute.coord<"(?,3)">, %b: !cute.layout<"(?,8):(8,1)">) {
  %r = cute.crd2idx(%a, %b) : (!cute.coord<"(?,3)">, !cute.layout<"(?,8):(8,1)">) -> !cute.int_tuple<"?">
  func.return
}

func.func @layout_eval(%a: !cute.coord<"3">, %b: !cute.composed_layout<"S<1,0,1> o 2 o (2,3):(1,2)">) {
  %r = cute.layout_eval(%a, %b) : (!cute.coord<"3">, !cute.composed_layout<"S<1,0,1> o 2 o (2,3):(1,2)">) -> !cute.int_tuple<"5">
  func.return
}

func.func @idx2crd(%a: !cute.int_tuple<"13">, %b: !cute.shape<"(6,8)">) {
  %r = cute.idx2crd(%a, %b) : (!cute.int_tuple<"13">, !cute.shape<"(6,8)">) -> !cute.coord<"(1,2)">
  func.return
}

func.func @increment_coord(%a: !cute.coord<"(5,2)">, %b: !cute.shape<"(6,8)">) {
  %r = cute.increment_coord(%a, %b) : (!cute.coord<"(5,2)">, !cute.shape<"(6,8)">) -> !cute.coord<"(0,3)">
  func.return
}

func.func @tuple_add(%a: !cute.int_tuple<"(1,2)">, %b: !cute.int_tuple<"(3,?)">) {
  %r = cute.tuple_add(%a, %b) : (!cute.int_tuple<"(1,2)">, !cute.int_tuple<"(3,?)">) -> !cute.int_tuple<"(4,?)">
  func.return
}

func.func @tuple_sub(%a: !cute.int_tuple<"(5,4)">, %b: !cute.int_tuple<"(3,1)">) {
  %r = cute.tuple_sub(%a, %b) : (!cute.int_tuple<"(5,4)">, !cute.int_tuple<"(3,1)">) -> !cute.int_tuple<"(2,3)">
  func.return
}

func.func @shape_div(%a: !cute.shape<"(6,8)">, %b: !cute.shape<"(3,4)">) {
  %r = cute.shape_div(%a, %b) : (!cute.shape<"(6,8)">, !cute.shape<"(3,4)">) -> !cute.shape<"(2,2)">
  func.return
}

func.func @ceil_div(%a: !cute.shape<"(?,100)">, %b: !cute.shape<"(128,64)">) {
  %r = cute.ceil_div(%a, %b) : (!cute.shape<"(?,100)">, !cute.shape<"(128,64)">) -> !cute.shape<"(?,2)">
  func.return
}

func.func @append_to_rank(%a: !cute.shape<"(4,8)">, %b: !cute.shape<"1">) {
  %r = cute.append_to_rank<4> (%a, %b) : !cute.shape<"(4,8)">, !cute.shape<"1">
  func.return
}

func.func @prepend_to_rank(%a: !cute.shape<"(4,8)">, %b: !cute.shape<"1">) {
  %r = cute.prepend_to_rank<4> (%a, %b) : !cute.shape<"(4,8)">, !cute.shape<"1">
  func.return
}

func.func @to_int_tuple(%a: !cute.shape<"(4,?)">) {
  %r = cute.to_int_tuple(%a) : !cute.shape<"(4,?)"> -> !cute.int_tuple<"(4,?)">
  func.return
}

func.func @to_shape(%a: !cute.int_tuple<"(4,?)">) {
  %r = cute.to_shape(%a) : !cute.int_tuple<"(4,?)"> -> !cute.shape<"(4,?)">
  func.return
}

func.func @to_stride(%a: !cute.int_tuple<"(8,1)">) {
  %r = cute.to_stride(%a) : !cute.int_tuple<"(8,1)"> -> !cute.stride<"(8,1)">
  func.return
}

func.func @to_coord(%a: !cute.int_tuple<"(1,?)">) {
  %r = cute.to_coord(%a) : !cute.int_tuple<"(1,?)"> -> !cute.coord<"(1,?)">
  func.return
}
