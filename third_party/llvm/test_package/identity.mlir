// Parses with nothing but the func dialect: what an LLVM without NVPTX is tested with.
func.func @identity(%x: f32) -> f32 {
  return %x : f32
}
