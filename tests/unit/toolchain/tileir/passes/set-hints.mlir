// entry: { hints = { sm_90 = { occupancy = 2, num_ctas = 2 } } }
entry @k() {
  return
}
// becomes
entry @k() optimization_hints=<sm_90 = {occupancy = 2, num_cta_in_cga = 2}> {
  return
}
// -----
// entry: { hints = { sm_90 = { latency = 3 } } }
// error: a latency has no effect, as no loop with a matrix product loads anything
entry @k() {
  return
}
// -----
// entry: { hints = { sm_90 = { warps = 4 } } }
// error: there is no hint warps
entry @k() {
  return
}
