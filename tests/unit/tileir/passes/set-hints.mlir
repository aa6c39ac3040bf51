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
// error: no loop multiplies what it loads
entry @k() {
  return
}
// -----
// entry: { hints = { sm_90 = { warps = 4 } } }
// error: no hint is called warps
entry @k() {
  return
}
