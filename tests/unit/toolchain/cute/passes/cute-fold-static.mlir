func.func @f() -> !cute.layout<"((3,4),(2,2)):((8,1),(24,4))"> {
  %a = cute.static : !cute.layout<"(6,8):(8,1)">
  %t = cute.static : !cute.shape<"(3,4)">
  %r = cute.zipped_divide(%a, %t) : (!cute.layout<"(6,8):(8,1)">, !cute.shape<"(3,4)">) -> !cute.layout<"((3,4),(2,2)):((8,1),(24,4))">
  func.return %r : !cute.layout<"((3,4),(2,2)):((8,1),(24,4))">
}
// becomes
func.func @f() -> !cute.layout<"((3,4),(2,2)):((8,1),(24,4))"> {
  %r = cute.static : !cute.layout<"((3,4),(2,2)):((8,1),(24,4))">
  func.return %r : !cute.layout<"((3,4),(2,2)):((8,1),(24,4))">
}
