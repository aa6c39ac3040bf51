// The token is passed on as it came; the sum is used.
entry @k(%n: tile<i32>) {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %start = make_token : token
  %token, %sum = for %i in (%zero to %n, step %one) : tile<i32> iter_values(%before = %start, %acc = %zero) -> (token, tile<i32>) {
    %next = addi %acc, %i : tile<i32>
    continue %before, %next : token, tile<i32>
  }
  %again = addi %sum, %sum : tile<i32>
  return
}
// becomes
entry @k(%n: tile<i32>) {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %start = make_token : token
  %sum = for %i in (%zero to %n, step %one) : tile<i32> iter_values(%acc = %zero) -> (tile<i32>) {
    %next = addi %acc, %i : tile<i32>
    continue %next : tile<i32>
  }
  %again = addi %sum, %sum : tile<i32>
  return
}
// -----
// A result that is used stays.
entry @k(%n: tile<i32>) {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %same = for %i in (%zero to %n, step %one) : tile<i32> iter_values(%acc = %one) -> (tile<i32>) {
    continue %acc : tile<i32>
  }
  %again = addi %same, %same : tile<i32>
  return
}
// becomes
entry @k(%n: tile<i32>) {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %same = for %i in (%zero to %n, step %one) : tile<i32> iter_values(%acc = %one) -> (tile<i32>) {
    continue %acc : tile<i32>
  }
  %again = addi %same, %same : tile<i32>
  return
}
