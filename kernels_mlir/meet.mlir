// How blocks of several ranks meet: flags in peer memory, of which block b of rank s writes flags[r, s, b] alone, and a state of
// each block: how often it has met the others, and 1 + the rank that it gave up waiting for.

include "common.mlir"

sizes SPINS = 16777216

!long = !cuda_tile.tile<i64>
!place = !cuda_tile.tile<ptr<i32>>
!counts = !cuda_tile.tensor_view<?x?xi32, strides=[?,1]>
!count_part = !cuda_tile.partition_view<tile=(1x1), !counts>

// The place of flags[%r, %s, %b]
fragment @flag(%flags: !place, %stride0: !int, %stride1: !int, %r: !int, %s: !int, %b: !int) -> !place {
  %r_long = exti %r signed : !int -> !long
  %stride0_long = exti %stride0 signed : !int -> !long
  %of_r = muli %r_long, %stride0_long : !long
  %s_long = exti %s signed : !int -> !long
  %stride1_long = exti %stride1 signed : !int -> !long
  %of_s = muli %s_long, %stride1_long : !long
  %of_rs = addi %of_r, %of_s : !long
  %b_long = exti %b signed : !int -> !long
  %at = addi %of_rs, %b_long : !long
  %place = offset %flags, %at : !place, !long -> !place
  yield %place : !place
}

// One more to flags[r, rank, b] of every other rank r. %before: what they may read then.
fragment @tell(%flags: !place, %stride0: !int, %stride1: !int, %R: !int, %rank: !int, %b: !int, %before: token) -> token {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %sent = for %r in (%zero to %R, step %one) : !int iter_values(%t = %before) -> (token) {
    %other = cmpi not_equal %r, %rank, signed : !int -> !flag
    %next = if %other -> (token) {
      %place = call @flag(%flags, %stride0, %stride1, %r, %rank, %b)
      %old, %told = atomic_rmw_tko release sys %place, add, %one token = %t : !place, !int -> !int, token
      yield %told : token
    } else {
      yield %t : token
    }
    continue %next : token
  }
  yield %sent : token
}

// How often the block has come, and 1 + the rank that it gave up waiting for
fragment @recall(%state: !counts, %b: !int, %before: token) -> (!int, !int, token) {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %state_parts = make_partition_view %state : !count_part
  %came_tile, %t0 = load_view_tko weak %state_parts[%b, %zero] token = %before
      optimization_hints = <default = {allow_tma = false}> : !count_part, !int -> !int_1x1, token
  %gone_tile, %t1 = load_view_tko weak %state_parts[%b, %one] token = %before
      optimization_hints = <default = {allow_tma = false}> : !count_part, !int -> !int_1x1, token
  %came = reshape %came_tile : !int_1x1 -> !int
  %gone = reshape %gone_tile : !int_1x1 -> !int
  %read = join_tokens %t0, %t1 : token
  yield %came, %gone, %read : !int, !int, token
}

fragment @note(%state: !counts, %b: !int, %came: !int, %gone: !int, %before: token) -> token {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %state_parts = make_partition_view %state : !count_part
  %came_1x1 = reshape %came : !int -> !int_1x1
  %gone_1x1 = reshape %gone : !int -> !int_1x1
  %s0 = store_view_tko weak %came_1x1, %state_parts[%b, %zero] token = %before
      optimization_hints = <default = {allow_tma = false}> : !int_1x1, !count_part, !int -> token
  %s1 = store_view_tko weak %gone_1x1, %state_parts[%b, %one] token = %before
      optimization_hints = <default = {allow_tma = false}> : !int_1x1, !count_part, !int -> token
  %after = join_tokens %s0, %s1 : token
  yield %after : token
}

// Waits until flags[rank, r, b] of every other rank r is %wanted. One that asks SPINS times in vain gives up, and one that has
// given up does not wait. The result: 1 + the rank that it gave up waiting for, or what %gone was.
fragment @wait(%flags: !place, %stride0: !int, %stride1: !int, %R: !int, %rank: !int, %b: !int, %wanted: !int, %gone: !int,
    %before: token) -> (!int, token) {
  %zero = constant <i32: 0> : !int
  %one = constant <i32: 1> : !int
  %SPINS = constant <i32: SPINS> : !int
  %gone_after, %met = for %r in (%zero to %R, step %one) : !int iter_values(%g = %gone, %t = %before) -> (!int, token) {
    %other = cmpi not_equal %r, %rank, signed : !int -> !flag
    %g_next, %t_next = if %other -> (!int, token) {
      %place = call @flag(%flags, %stride0, %stride1, %rank, %r, %b)
      %g_new, %seen_last = loop iter_values(%turns = %zero, %u = %t) : !int, token -> !int, token {
        %seen, %asked = atomic_rmw_tko acquire sys %place, add, %zero token = %u : !place, !int -> !int, token
        // A difference, because counts wrap around
        %ahead = subi %seen, %wanted : !int
        %there = cmpi greater_than_or_equal %ahead, %zero, signed : !int -> !flag
        if %there {
          break %g, %asked : !int, token
        }
        %waits = cmpi equal %g, %zero, signed : !int -> !flag
        if %waits {
        } else {
          break %g, %asked : !int, token
        }
        %more = addi %turns, %one : !int
        %tired = cmpi greater_than %more, %SPINS, signed : !int -> !flag
        if %tired {
          %who = addi %r, %one : !int
          break %who, %asked : !int, token
        }
        continue %more, %asked : !int, token
      }
      yield %g_new, %seen_last : !int, token
    } else {
      yield %g, %t : !int, token
    }
    continue %g_next, %t_next : !int, token
  }
  yield %gone_after, %met : !int, token
}

// Tells the same block of every other rank that this one has come, and waits for them. %before: what the other ranks may read
// then; the result: after the meeting.
fragment @meet(%flags: !place, %stride0: !int, %stride1: !int, %state: !counts, %R: !int, %rank: !int, %before: token)
    -> token {
  %b, %unused_y, %unused_z = get_tile_block_id : !int
  %one = constant <i32: 1> : !int
  %sent = call @tell(%flags, %stride0, %stride1, %R, %rank, %b, %before)
  %came_before, %gone_before, %read = call @recall(%state, %b, %before)
  %came = addi %came_before, %one : !int
  %gone, %met = call @wait(%flags, %stride0, %stride1, %R, %rank, %b, %came, %gone_before, %sent)
  %loaded = join_tokens %met, %read : token
  %after = call @note(%state, %b, %came, %gone, %loaded)
  yield %after : token
}
