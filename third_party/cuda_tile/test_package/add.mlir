// c = a + b over one tile of 128 numbers: the same text in every version of the dialect.
cuda_tile.module @test {
  entry @add(%a: tile<ptr<f32>>, %b: tile<ptr<f32>>, %c: tile<ptr<f32>>) {
    %i = iota : tile<128xi32>
    %a1 = reshape %a : tile<ptr<f32>> -> tile<1xptr<f32>>
    %a2 = broadcast %a1 : tile<1xptr<f32>> -> tile<128xptr<f32>>
    %ap = offset %a2, %i : tile<128xptr<f32>>, tile<128xi32> -> tile<128xptr<f32>>
    %b1 = reshape %b : tile<ptr<f32>> -> tile<1xptr<f32>>
    %b2 = broadcast %b1 : tile<1xptr<f32>> -> tile<128xptr<f32>>
    %bp = offset %b2, %i : tile<128xptr<f32>>, tile<128xi32> -> tile<128xptr<f32>>
    %c1 = reshape %c : tile<ptr<f32>> -> tile<1xptr<f32>>
    %c2 = broadcast %c1 : tile<1xptr<f32>> -> tile<128xptr<f32>>
    %cp = offset %c2, %i : tile<128xptr<f32>>, tile<128xi32> -> tile<128xptr<f32>>
    %av, %t0 = load_ptr_tko weak %ap : tile<128xptr<f32>> -> tile<128xf32>, token
    %bv, %t1 = load_ptr_tko weak %bp : tile<128xptr<f32>> -> tile<128xf32>, token
    %cv = addf %av, %bv rounding<nearest_even> : tile<128xf32>
    %t2 = store_ptr_tko weak %cp, %cv : tile<128xptr<f32>>, tile<128xf32> -> token
    return
  }
}
