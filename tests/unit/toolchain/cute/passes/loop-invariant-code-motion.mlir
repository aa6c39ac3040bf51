func.func @f(%a: i32, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %x = arith.addi %a, %a : i32
    func.call @g(%x) : (i32) -> ()
    scf.yield
  }
  return
}
func.func private @g(i32)
// becomes
func.func @f(%a: i32, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %x = arith.addi %a, %a : i32
  scf.for %i = %zero to %n step %one {
    func.call @g(%x) : (i32) -> ()
  }
  return
}
func.func private @g(i32)
