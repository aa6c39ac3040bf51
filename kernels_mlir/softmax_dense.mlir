// out = softmax(x) over rows of at most seven tiles of BN columns, less a vector, which begin at any element
//
// As `softmax_held`, of arrays without gaps: read and written in vectors of 8 elements, from the one that a row's first element is
// in. Of a row's results those in its first vector and in the one that its end is in are written element by element. The last
// elements of all are no whole vector perhaps, and read so too.

!elem = bf16  // storage

!int = !cuda_tile.tile<i32>
!int_1 = !cuda_tile.tile<1xi32>
!flag = !cuda_tile.tile<i1>
!real = !cuda_tile.tile<f32>
!real_1 = !cuda_tile.tile<1xf32>
!ptr = !cuda_tile.tile<ptr<!elem>>
!ptr_1 = !cuda_tile.tile<1xptr<!elem>>
!place_BN = !cuda_tile.tile<8192xptr<!elem>>
!index_BN = !cuda_tile.tile<8192xi32>
!mask_BN = !cuda_tile.tile<8192xi1>
!row_BN = !cuda_tile.tile<8192x!elem>
!f32_BN = !cuda_tile.tile<8192xf32>
!place_8 = !cuda_tile.tile<8xptr<!elem>>
!index_8 = !cuda_tile.tile<8xi32>
!mask_8 = !cuda_tile.tile<8xi1>
!few_8 = !cuda_tile.tile<8x!elem>
!f32_8 = !cuda_tile.tile<8xf32>

cuda_tile.module @softmax_dense {
  entry @softmax_dense(%x: !ptr, %x_m: !int, %x_n: !int, %x_stride: !int, %x_unit: !int,
      %out: !ptr, %out_m: !int, %out_n: !int, %out_stride: !int, %out_unit: !int) {
    %M = assume bounded<0, ?>, %x_m : !int
    %N = assume bounded<0, ?>, %x_n : !int
    %m, %unused_y, %unused_z = get_tile_block_id : !int
    %BN = constant <i32: 8192> : !int
    %vector = constant <i32: 8> : !int
    %start = muli %m, %N : !int
    %end = addi %start, %N : !int
    %first_vector = divi %start, %vector signed : !int
    %first = muli %first_vector, %vector : !int
    %last_vector = divi %end, %vector signed : !int
    %last = muli %last_vector, %vector : !int
    %all = muli %M, %N : !int
    %whole_vectors = divi %all, %vector signed : !int
    %vectors = muli %whole_vectors, %vector : !int
    %second = addi %first, %vector : !int
    %start_1 = reshape %start : !int -> !int_1
    %end_1 = reshape %end : !int -> !int_1
    %first_1 = reshape %first : !int -> !int_1
    %last_1 = reshape %last : !int -> !int_1
    %vectors_1 = reshape %vectors : !int -> !int_1
    %second_1 = reshape %second : !int -> !int_1
    %start_line = broadcast %start_1 : !int_1 -> !index_BN
    %end_line = broadcast %end_1 : !int_1 -> !index_BN
    %last_line = broadcast %last_1 : !int_1 -> !index_BN
    %vectors_line = broadcast %vectors_1 : !int_1 -> !index_BN
    %second_line = broadcast %second_1 : !int_1 -> !index_BN
    %start_few = broadcast %start_1 : !int_1 -> !index_8
    %end_few = broadcast %end_1 : !int_1 -> !index_8
    %first_few = broadcast %first_1 : !int_1 -> !index_8
    %last_few = broadcast %last_1 : !int_1 -> !index_8
    %x_1 = reshape %x : !ptr -> !ptr_1
    %x_line = broadcast %x_1 : !ptr_1 -> !place_BN
    %x_few = broadcast %x_1 : !ptr_1 -> !place_8
    %out_1 = reshape %out : !ptr -> !ptr_1
    %out_line = broadcast %out_1 : !ptr_1 -> !place_BN
    %out_few = broadcast %out_1 : !ptr_1 -> !place_8
    %lane = iota : !index_BN
    %few = iota : !index_8
    %log2e = constant <f32: 1.4426950408889634> : !f32_BN
    %nothing = constant <!elem: 0.0> : !row_BN
    %lowest_f32 = constant <f32: 0xFF800000> : !f32_BN
    %lowest = ftof %lowest_f32 : !f32_BN -> !row_BN
    %few_nothing = constant <!elem: 0.0> : !few_8
    %few_lowest_f32 = constant <f32: 0xFF800000> : !f32_8
    %few_lowest = ftof %few_lowest_f32 : !f32_8 -> !few_8
    %place0_1 = reshape %first : !int -> !int_1
    %place0 = broadcast %place0_1 : !int_1 -> !index_BN
    %index0 = addi %place0, %lane : !index_BN
    %there0 = cmpi less_than %index0, %vectors_line, signed : !index_BN -> !mask_BN
    %from0 = offset %x_line, %index0 : !place_BN, !index_BN -> !place_BN
    %read0, %t0 = load_ptr_tko weak %from0, %there0, %nothing : !place_BN, !mask_BN, !row_BN -> !row_BN, token
    %inside0 = cmpi less_than %index0, %end_line, signed : !index_BN -> !mask_BN
    %not_past0 = select %inside0, %read0, %lowest : !mask_BN, !row_BN
    %begun0 = cmpi greater_than_or_equal %index0, %start_line, signed : !index_BN -> !mask_BN
    %tile0 = select %begun0, %not_past0, %lowest : !mask_BN, !row_BN
    %at1 = addi %first, %BN : !int
    %place1_1 = reshape %at1 : !int -> !int_1
    %place1 = broadcast %place1_1 : !int_1 -> !index_BN
    %index1 = addi %place1, %lane : !index_BN
    %there1 = cmpi less_than %index1, %vectors_line, signed : !index_BN -> !mask_BN
    %from1 = offset %x_line, %index1 : !place_BN, !index_BN -> !place_BN
    %read1, %t1 = load_ptr_tko weak %from1, %there1, %nothing : !place_BN, !mask_BN, !row_BN -> !row_BN, token
    %inside1 = cmpi less_than %index1, %end_line, signed : !index_BN -> !mask_BN
    %tile1 = select %inside1, %read1, %lowest : !mask_BN, !row_BN
    %at2 = addi %at1, %BN : !int
    %place2_1 = reshape %at2 : !int -> !int_1
    %place2 = broadcast %place2_1 : !int_1 -> !index_BN
    %index2 = addi %place2, %lane : !index_BN
    %there2 = cmpi less_than %index2, %vectors_line, signed : !index_BN -> !mask_BN
    %from2 = offset %x_line, %index2 : !place_BN, !index_BN -> !place_BN
    %read2, %t2 = load_ptr_tko weak %from2, %there2, %nothing : !place_BN, !mask_BN, !row_BN -> !row_BN, token
    %inside2 = cmpi less_than %index2, %end_line, signed : !index_BN -> !mask_BN
    %tile2 = select %inside2, %read2, %lowest : !mask_BN, !row_BN
    %at3 = addi %at2, %BN : !int
    %place3_1 = reshape %at3 : !int -> !int_1
    %place3 = broadcast %place3_1 : !int_1 -> !index_BN
    %index3 = addi %place3, %lane : !index_BN
    %there3 = cmpi less_than %index3, %vectors_line, signed : !index_BN -> !mask_BN
    %from3 = offset %x_line, %index3 : !place_BN, !index_BN -> !place_BN
    %read3, %t3 = load_ptr_tko weak %from3, %there3, %nothing : !place_BN, !mask_BN, !row_BN -> !row_BN, token
    %inside3 = cmpi less_than %index3, %end_line, signed : !index_BN -> !mask_BN
    %tile3 = select %inside3, %read3, %lowest : !mask_BN, !row_BN
    %at4 = addi %at3, %BN : !int
    %place4_1 = reshape %at4 : !int -> !int_1
    %place4 = broadcast %place4_1 : !int_1 -> !index_BN
    %index4 = addi %place4, %lane : !index_BN
    %there4 = cmpi less_than %index4, %vectors_line, signed : !index_BN -> !mask_BN
    %from4 = offset %x_line, %index4 : !place_BN, !index_BN -> !place_BN
    %read4, %t4 = load_ptr_tko weak %from4, %there4, %nothing : !place_BN, !mask_BN, !row_BN -> !row_BN, token
    %inside4 = cmpi less_than %index4, %end_line, signed : !index_BN -> !mask_BN
    %tile4 = select %inside4, %read4, %lowest : !mask_BN, !row_BN
    %at5 = addi %at4, %BN : !int
    %place5_1 = reshape %at5 : !int -> !int_1
    %place5 = broadcast %place5_1 : !int_1 -> !index_BN
    %index5 = addi %place5, %lane : !index_BN
    %there5 = cmpi less_than %index5, %vectors_line, signed : !index_BN -> !mask_BN
    %from5 = offset %x_line, %index5 : !place_BN, !index_BN -> !place_BN
    %read5, %t5 = load_ptr_tko weak %from5, %there5, %nothing : !place_BN, !mask_BN, !row_BN -> !row_BN, token
    %inside5 = cmpi less_than %index5, %end_line, signed : !index_BN -> !mask_BN
    %tile5 = select %inside5, %read5, %lowest : !mask_BN, !row_BN
    %at6 = addi %at5, %BN : !int
    %place6_1 = reshape %at6 : !int -> !int_1
    %place6 = broadcast %place6_1 : !int_1 -> !index_BN
    %index6 = addi %place6, %lane : !index_BN
    %there6 = cmpi less_than %index6, %vectors_line, signed : !index_BN -> !mask_BN
    %from6 = offset %x_line, %index6 : !place_BN, !index_BN -> !place_BN
    %read6, %t6 = load_ptr_tko weak %from6, %there6, %nothing : !place_BN, !mask_BN, !row_BN -> !row_BN, token
    %inside6 = cmpi less_than %index6, %end_line, signed : !index_BN -> !mask_BN
    %tile6 = select %inside6, %read6, %lowest : !mask_BN, !row_BN

    %begins_index = addi %first_few, %few : !index_8
    %begins_mask = cmpi greater_than_or_equal %begins_index, %start_few, signed : !index_8 -> !mask_8
    %begins_from = offset %x_few, %begins_index : !place_8, !index_8 -> !place_8
    %begins_read, %begins_token = load_ptr_tko weak %begins_from, %begins_mask, %few_nothing
        : !place_8, !mask_8, !few_8 -> !few_8, token
    %begins = ftof %begins_read : !few_8 -> !f32_8
    %ends_index = addi %last_few, %few : !index_8
    %ends_mask = cmpi less_than %ends_index, %end_few, signed : !index_8 -> !mask_8
    %ends_from = offset %x_few, %ends_index : !place_8, !index_8 -> !place_8
    %ends_read, %ends_token = load_ptr_tko weak %ends_from, %ends_mask, %few_lowest
        : !place_8, !mask_8, !few_8 -> !few_8, token
    %ends = ftof %ends_read : !few_8 -> !f32_8
    %max1 = maxf %tile0, %tile1 : !row_BN
    %max2 = maxf %max1, %tile2 : !row_BN
    %max3 = maxf %max2, %tile3 : !row_BN
    %max4 = maxf %max3, %tile4 : !row_BN
    %max5 = maxf %max4, %tile5 : !row_BN
    %max6 = maxf %max5, %tile6 : !row_BN
    %max_f32 = ftof %max6 : !row_BN -> !f32_BN
    %maximum = reduce %max_f32 dim=0 identities=[0xFF800000 : f32] : !f32_BN -> !real
    (%max_a: !real, %max_b: !real) {
      %larger = maxf %max_a, %max_b : !real
      yield %larger : !real
    }
    %ends_maximum = reduce %ends dim=0 identities=[0xFF800000 : f32] : !f32_8 -> !real
    (%ends_max_a: !real, %ends_max_b: !real) {
      %ends_larger = maxf %ends_max_a, %ends_max_b : !real
      yield %ends_larger : !real
    }
    %largest = maxf %maximum, %ends_maximum : !real
    %largest_1 = reshape %largest : !real -> !real_1
    %maximum_full = broadcast %largest_1 : !real_1 -> !f32_BN
    %few_maximum = broadcast %largest_1 : !real_1 -> !f32_8
    %few_log2e = constant <f32: 1.4426950408889634> : !f32_8
    %value0 = ftof %tile0 : !row_BN -> !f32_BN
    %below0 = subf %value0, %maximum_full : !f32_BN
    %scaled0 = mulf %below0, %log2e : !f32_BN
    %power0 = exp2 %scaled0 flush_to_zero : !f32_BN
    %value1 = ftof %tile1 : !row_BN -> !f32_BN
    %below1 = subf %value1, %maximum_full : !f32_BN
    %scaled1 = mulf %below1, %log2e : !f32_BN
    %power1 = exp2 %scaled1 flush_to_zero : !f32_BN
    %sum1 = addf %power0, %power1 : !f32_BN
    %value2 = ftof %tile2 : !row_BN -> !f32_BN
    %below2 = subf %value2, %maximum_full : !f32_BN
    %scaled2 = mulf %below2, %log2e : !f32_BN
    %power2 = exp2 %scaled2 flush_to_zero : !f32_BN
    %sum2 = addf %sum1, %power2 : !f32_BN
    %value3 = ftof %tile3 : !row_BN -> !f32_BN
    %below3 = subf %value3, %maximum_full : !f32_BN
    %scaled3 = mulf %below3, %log2e : !f32_BN
    %power3 = exp2 %scaled3 flush_to_zero : !f32_BN
    %sum3 = addf %sum2, %power3 : !f32_BN
    %value4 = ftof %tile4 : !row_BN -> !f32_BN
    %below4 = subf %value4, %maximum_full : !f32_BN
    %scaled4 = mulf %below4, %log2e : !f32_BN
    %power4 = exp2 %scaled4 flush_to_zero : !f32_BN
    %sum4 = addf %sum3, %power4 : !f32_BN
    %value5 = ftof %tile5 : !row_BN -> !f32_BN
    %below5 = subf %value5, %maximum_full : !f32_BN
    %scaled5 = mulf %below5, %log2e : !f32_BN
    %power5 = exp2 %scaled5 flush_to_zero : !f32_BN
    %sum5 = addf %sum4, %power5 : !f32_BN
    %value6 = ftof %tile6 : !row_BN -> !f32_BN
    %below6 = subf %value6, %maximum_full : !f32_BN
    %scaled6 = mulf %below6, %log2e : !f32_BN
    %power6 = exp2 %scaled6 flush_to_zero : !f32_BN
    %sum6 = addf %sum5, %power6 : !f32_BN
    %sum = reduce %sum6 dim=0 identities=[0.0 : f32] : !f32_BN -> !real
    (%sum_a: !real, %sum_b: !real) {
      %sum_ab = addf %sum_a, %sum_b : !real
      yield %sum_ab : !real
    }
    %ends_below = subf %ends, %few_maximum : !f32_8
    %ends_scaled = mulf %ends_below, %few_log2e : !f32_8
    %ends_power = exp2 %ends_scaled flush_to_zero : !f32_8
    %ends_sum = reduce %ends_power dim=0 identities=[0.0 : f32] : !f32_8 -> !real
    (%ends_a: !real, %ends_b: !real) {
      %ends_ab = addf %ends_a, %ends_b : !real
      yield %ends_ab : !real
    }
    %ends_alone = cmpi greater_than_or_equal %last, %vectors, signed : !int -> !flag
    %no_sum = constant <f32: 0.0> : !real
    %left_over = select %ends_alone, %ends_sum, %no_sum : !flag, !real
    %total = addf %sum, %left_over : !real
    %unit = constant <f32: 1.0> : !real
    %inverse = divf %unit, %total : !real
    %inverse_1 = reshape %inverse : !real -> !real_1
    %inverse_full = broadcast %inverse_1 : !real_1 -> !f32_BN
    %few_inverse = broadcast %inverse_1 : !real_1 -> !f32_8
    %again_value0 = ftof %tile0 : !row_BN -> !f32_BN
    %again_below0 = subf %again_value0, %maximum_full : !f32_BN
    %again_scaled0 = mulf %again_below0, %log2e : !f32_BN
    %again_power0 = exp2 %again_scaled0 flush_to_zero : !f32_BN
    %share0 = mulf %again_power0, %inverse_full : !f32_BN
    %result0 = ftof %share0 : !f32_BN -> !row_BN
    %to0 = offset %out_line, %index0 : !place_BN, !index_BN -> !place_BN
    %whole0 = cmpi less_than %index0, %last_line, signed : !index_BN -> !mask_BN
    %past_first = cmpi greater_than_or_equal %index0, %second_line, signed : !index_BN -> !mask_BN
    %written0 = andi %whole0, %past_first : !mask_BN
    %s0 = store_ptr_tko weak %to0, %result0, %written0 : !place_BN, !row_BN, !mask_BN -> token
    %again_value1 = ftof %tile1 : !row_BN -> !f32_BN
    %again_below1 = subf %again_value1, %maximum_full : !f32_BN
    %again_scaled1 = mulf %again_below1, %log2e : !f32_BN
    %again_power1 = exp2 %again_scaled1 flush_to_zero : !f32_BN
    %share1 = mulf %again_power1, %inverse_full : !f32_BN
    %result1 = ftof %share1 : !f32_BN -> !row_BN
    %to1 = offset %out_line, %index1 : !place_BN, !index_BN -> !place_BN
    %whole1 = cmpi less_than %index1, %last_line, signed : !index_BN -> !mask_BN
    %s1 = store_ptr_tko weak %to1, %result1, %whole1 : !place_BN, !row_BN, !mask_BN -> token
    %again_value2 = ftof %tile2 : !row_BN -> !f32_BN
    %again_below2 = subf %again_value2, %maximum_full : !f32_BN
    %again_scaled2 = mulf %again_below2, %log2e : !f32_BN
    %again_power2 = exp2 %again_scaled2 flush_to_zero : !f32_BN
    %share2 = mulf %again_power2, %inverse_full : !f32_BN
    %result2 = ftof %share2 : !f32_BN -> !row_BN
    %to2 = offset %out_line, %index2 : !place_BN, !index_BN -> !place_BN
    %whole2 = cmpi less_than %index2, %last_line, signed : !index_BN -> !mask_BN
    %s2 = store_ptr_tko weak %to2, %result2, %whole2 : !place_BN, !row_BN, !mask_BN -> token
    %again_value3 = ftof %tile3 : !row_BN -> !f32_BN
    %again_below3 = subf %again_value3, %maximum_full : !f32_BN
    %again_scaled3 = mulf %again_below3, %log2e : !f32_BN
    %again_power3 = exp2 %again_scaled3 flush_to_zero : !f32_BN
    %share3 = mulf %again_power3, %inverse_full : !f32_BN
    %result3 = ftof %share3 : !f32_BN -> !row_BN
    %to3 = offset %out_line, %index3 : !place_BN, !index_BN -> !place_BN
    %whole3 = cmpi less_than %index3, %last_line, signed : !index_BN -> !mask_BN
    %s3 = store_ptr_tko weak %to3, %result3, %whole3 : !place_BN, !row_BN, !mask_BN -> token
    %again_value4 = ftof %tile4 : !row_BN -> !f32_BN
    %again_below4 = subf %again_value4, %maximum_full : !f32_BN
    %again_scaled4 = mulf %again_below4, %log2e : !f32_BN
    %again_power4 = exp2 %again_scaled4 flush_to_zero : !f32_BN
    %share4 = mulf %again_power4, %inverse_full : !f32_BN
    %result4 = ftof %share4 : !f32_BN -> !row_BN
    %to4 = offset %out_line, %index4 : !place_BN, !index_BN -> !place_BN
    %whole4 = cmpi less_than %index4, %last_line, signed : !index_BN -> !mask_BN
    %s4 = store_ptr_tko weak %to4, %result4, %whole4 : !place_BN, !row_BN, !mask_BN -> token
    %again_value5 = ftof %tile5 : !row_BN -> !f32_BN
    %again_below5 = subf %again_value5, %maximum_full : !f32_BN
    %again_scaled5 = mulf %again_below5, %log2e : !f32_BN
    %again_power5 = exp2 %again_scaled5 flush_to_zero : !f32_BN
    %share5 = mulf %again_power5, %inverse_full : !f32_BN
    %result5 = ftof %share5 : !f32_BN -> !row_BN
    %to5 = offset %out_line, %index5 : !place_BN, !index_BN -> !place_BN
    %whole5 = cmpi less_than %index5, %last_line, signed : !index_BN -> !mask_BN
    %s5 = store_ptr_tko weak %to5, %result5, %whole5 : !place_BN, !row_BN, !mask_BN -> token
    %again_value6 = ftof %tile6 : !row_BN -> !f32_BN
    %again_below6 = subf %again_value6, %maximum_full : !f32_BN
    %again_scaled6 = mulf %again_below6, %log2e : !f32_BN
    %again_power6 = exp2 %again_scaled6 flush_to_zero : !f32_BN
    %share6 = mulf %again_power6, %inverse_full : !f32_BN
    %result6 = ftof %share6 : !f32_BN -> !row_BN
    %to6 = offset %out_line, %index6 : !place_BN, !index_BN -> !place_BN
    %whole6 = cmpi less_than %index6, %last_line, signed : !index_BN -> !mask_BN
    %s6 = store_ptr_tko weak %to6, %result6, %whole6 : !place_BN, !row_BN, !mask_BN -> token
    %begins_below = subf %begins, %few_maximum : !f32_8
    %begins_scaled = mulf %begins_below, %few_log2e : !f32_8
    %begins_power = exp2 %begins_scaled flush_to_zero : !f32_8
    %begins_share = mulf %begins_power, %few_inverse : !f32_8
    %begins_result = ftof %begins_share : !f32_8 -> !few_8
    %begins_to = offset %out_few, %begins_index : !place_8, !index_8 -> !place_8
    %begins_stored = store_ptr_tko weak %begins_to, %begins_result, %begins_mask : !place_8, !few_8, !mask_8 -> token
    %ends_share = mulf %ends_power, %few_inverse : !f32_8
    %ends_result = ftof %ends_share : !f32_8 -> !few_8
    %ends_to = offset %out_few, %ends_index : !place_8, !index_8 -> !place_8
    %ends_stored = store_ptr_tko weak %ends_to, %ends_result, %ends_mask : !place_8, !few_8, !mask_8 -> token
    return
  }
}
