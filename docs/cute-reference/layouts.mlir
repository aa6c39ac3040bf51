// Layouts
// Parts of layouts, the algebra on them, divisions by tiles and products.

func.func @make_layout(%a: !cute.shape<"(4,8)">, %b: !cute.stride<"(8,1)">) {
  %r = cute.make_layout(%a, %b) : (!cute.shape<"(4,8)">, !cute.stride<"(8,1)">) -> !cute.layout<"(4,8):(8,1)">
  func.return
}

func.func @make_composed_layout(%a: !cute.swizzle<"S<3,4,3>">, %b: !cute.int_tuple<"0">, %c: !cute.layout<"(8,64):(64,1)">) {
  %r = cute.make_composed_layout(%a, %b, %c) : (!cute.swizzle<"S<3,4,3>">, <"0">, <"(8,64):(64,1)">) -> <"S<3,4,3> o 0 o (8,64):(64,1)">
  func.return
}

func.func @get_shape(%a: !cute.layout<"(6,8):(8,1)">) {
  %r = cute.get_shape(%a) : !cute.layout<"(6,8):(8,1)"> -> !cute.shape<"(6,8)">
  func.return
}

func.func @get_stride(%a: !cute.layout<"(6,8):(8,1)">) {
  %r = cute.get_stride(%a) : <"(6,8):(8,1)"> -> !cute.stride<"(8,1)">
  func.return
}

func.func @composed_get_inner(%a: !cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">) {
  %r = cute.composed_get_inner(%a) : <"S<3,4,3> o 0 o (8,64):(64,1)"> -> !cute.swizzle<"S<3,4,3>">
  func.return
}

func.func @composed_get_offset(%a: !cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">) {
  %r = cute.composed_get_offset(%a) : <"S<3,4,3> o 0 o (8,64):(64,1)"> -> !cute.int_tuple<"0">
  func.return
}

func.func @composed_get_outer(%a: !cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">) {
  %r = cute.composed_get_outer(%a) : <"S<3,4,3> o 0 o (8,64):(64,1)"> -> <"(8,64):(64,1)">
  func.return
}

func.func @group_modes(%a: !cute.layout<"(2,3,4):(1,2,6)">) {
  %r = cute.group_modes<0, 2> (%a) : (!cute.layout<"(2,3,4):(1,2,6)">) -> !cute.layout<"((2,3),4):((1,2),6)">
  func.return
}

func.func @recast_layout(%a: !cute.layout<"(8,4):(1,8)">) {
  %r = cute.recast_layout<32, 16> (%a) : !cute.layout<"(8,4):(1,8)"> -> !cute.layout<"(4,4):(1,4)">
  func.return
}

func.func @flatten(%a: !cute.layout<"((2,3),4):((4,8),1)">) {
  %r = cute.flatten(%a) : (!cute.layout<"((2,3),4):((4,8),1)">) -> !cute.layout<"(2,3,4):(4,8,1)">
  func.return
}

func.func @filter(%a: !cute.layout<"(4,8,1):(0,1,8)">) {
  %r = cute.filter(%a) : (!cute.layout<"(4,8,1):(0,1,8)">) -> !cute.layout<"8:1">
  func.return
}

func.func @filter_zeros(%a: !cute.layout<"(4,8):(0,1)">) {
  %r = cute.filter_zeros(%a) : (!cute.layout<"(4,8):(0,1)">) -> !cute.layout<"(1,8):(0,1)">
  func.return
}

func.func @make_ordered_layout(%a: !cute.shape<"(4,8)">, %b: !cute.int_tuple<"(1,0)">) {
  %r = cute.make_ordered_layout(%a, %b) : (!cute.shape<"(4,8)">, !cute.int_tuple<"(1,0)">) -> !cute.layout<"(4,8):(8,1)">
  func.return
}

func.func @make_layout_like(%a: !cute.layout<"(4,8):(100,1)">) {
  %r = cute.make_layout_like(%a) : !cute.layout<"(4,8):(100,1)"> -> !cute.layout<"(4,8):(8,1)">
  func.return
}

func.func @make_identity_layout(%a: !cute.shape<"(4,8)">) {
  %r = cute.make_identity_layout(%a) : !cute.shape<"(4,8)"> -> !cute.layout<"(4,8):(1@0,1@1)">
  func.return
}

func.func @coalesce(%a: !cute.layout<"(2,(1,6)):(1,(6,2))">) {
  %r = cute.coalesce(%a) : (!cute.layout<"(2,(1,6)):(1,(6,2))">) -> !cute.layout<"12:1">
  func.return
}

func.func @composition(%a: !cute.layout<"(6,8):(8,1)">, %b: !cute.layout<"(2,4):(6,1)">) {
  %r = cute.composition(%a, %b) : (!cute.layout<"(6,8):(8,1)">, !cute.layout<"(2,4):(6,1)">) -> !cute.layout<"(2,4):(1,8)">
  func.return
}

func.func @complement(%a: !cute.layout<"4:2">, %b: !cute.shape<"24">) {
  %r = cute.complement(%a, %b) : (!cute.layout<"4:2">, !cute.shape<"24">) -> !cute.layout<"(2,3):(1,8)">
  func.return
}

func.func @right_inverse(%a: !cute.layout<"(4,3):(3,1)">) {
  %r = cute.right_inverse(%a) : (!cute.layout<"(4,3):(3,1)">) -> !cute.layout<"(3,4):(4,1)">
  func.return
}

func.func @left_inverse(%a: !cute.layout<"(4,3):(3,1)">) {
  %r = cute.left_inverse(%a) : (!cute.layout<"(4,3):(3,1)">) -> !cute.layout<"(3,4):(4,1)">
  func.return
}

func.func @dice(%a: !cute.layout<"(6,8):(8,1)">, %b: !cute.coord<"(_,3)">) {
  %r = cute.dice(%a, %b) : !cute.layout<"(6,8):(8,1)">, !cute.coord<"(_,3)">
  func.return
}

func.func @tile_to_shape(%a: !cute.layout<"(2,2):(2,1)">, %b: !cute.shape<"(4,6)">) {
  %r = cute.tile_to_shape(%a, %b) : (!cute.layout<"(2,2):(2,1)">, !cute.shape<"(4,6)">) -> !cute.layout<"((2,2),(2,3)):((2,4),(1,8))">
  func.return
}

func.func @logical_divide(%a: !cute.layout<"(6,8):(8,1)">, %b: !cute.shape<"(3,4)">) {
  %r = cute.logical_divide(%a, %b) : (!cute.layout<"(6,8):(8,1)">, !cute.shape<"(3,4)">) -> !cute.layout<"((3,2),(4,2)):((8,24),(1,4))">
  func.return
}

func.func @zipped_divide(%a: !cute.layout<"(6,8):(8,1)">, %b: !cute.shape<"(3,4)">) {
  %r = cute.zipped_divide(%a, %b) : (!cute.layout<"(6,8):(8,1)">, !cute.shape<"(3,4)">) -> !cute.layout<"((3,4),(2,2)):((8,1),(24,4))">
  func.return
}

func.func @tiled_divide(%a: !cute.layout<"(6,8):(8,1)">, %b: !cute.shape<"(3,4)">) {
  %r = cute.tiled_divide(%a, %b) : (!cute.layout<"(6,8):(8,1)">, !cute.shape<"(3,4)">) -> !cute.layout<"((3,4),2,2):((8,1),24,4)">
  func.return
}

func.func @flat_divide(%a: !cute.layout<"(6,8):(8,1)">, %b: !cute.shape<"(3,4)">) {
  %r = cute.flat_divide(%a, %b) : (!cute.layout<"(6,8):(8,1)">, !cute.shape<"(3,4)">) -> !cute.layout<"(3,4,2,2):(8,1,24,4)">
  func.return
}

func.func @logical_product(%a: !cute.layout<"(2,2):(2,1)">, %b: !cute.layout<"(3,4):(1,3)">) {
  %r = cute.logical_product(%a, %b) : (!cute.layout<"(2,2):(2,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((2,2),(3,4)):((2,1),(4,12))">
  func.return
}

func.func @zipped_product(%a: !cute.layout<"(2,2):(2,1)">, %b: !cute.layout<"(3,4):(1,3)">) {
  %r = cute.zipped_product(%a, %b) : (!cute.layout<"(2,2):(2,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((2,2),(3,4)):((2,1),(4,12))">
  func.return
}

func.func @tiled_product(%a: !cute.layout<"(2,2):(2,1)">, %b: !cute.layout<"(3,4):(1,3)">) {
  %r = cute.tiled_product(%a, %b) : (!cute.layout<"(2,2):(2,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((2,2),3,4):((2,1),4,12)">
  func.return
}

func.func @flat_product(%a: !cute.layout<"(2,2):(2,1)">, %b: !cute.layout<"(3,4):(1,3)">) {
  %r = cute.flat_product(%a, %b) : (!cute.layout<"(2,2):(2,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"(2,2,3,4):(2,1,4,12)">
  func.return
}

func.func @blocked_product(%a: !cute.layout<"(2,2):(2,1)">, %b: !cute.layout<"(3,4):(1,3)">) {
  %r = cute.blocked_product(%a, %b) : (!cute.layout<"(2,2):(2,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((2,3),(2,4)):((2,4),(1,12))">
  func.return
}

func.func @raked_product(%a: !cute.layout<"(2,2):(2,1)">, %b: !cute.layout<"(3,4):(1,3)">) {
  %r = cute.raked_product(%a, %b) : (!cute.layout<"(2,2):(2,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((3,2),(4,2)):((4,2),(12,1))">
  func.return
}
