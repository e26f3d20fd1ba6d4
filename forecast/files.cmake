lockstep_library(forecast FILES forecast/forecast.c LINKS law sync base m)
lockstep_test(law LINKS forecast law)
# The answers to the commands predict, fit and simulate, which are in study/lockstep.
lockstep_library(predict
  FILES forecast/answers.c forecast/mesh_case.c forecast/mesh_links.c
        forecast/questions.c forecast/sizes.c forecast/step_questions.c
  LINKS forecast memory pipeline textbook squeeze model config base PkgConfig::CJSON m)
include(tests/says.cmake)
# 498 MB of gradients; 2(n-1)/n of them pass each link of the ring.
lockstep_says(predict 0 "ring +980 MB +331 ms.*64 workers: allreduce, ring and zero \
are fastest, too close to tell apart; sps takes 21.4 times as long; dps takes"
              $<TARGET_FILE:lockstep> predict model=gpt2 workers=64 link=25gbit
              compute_ms=900)
# With N = 32 x 1024 tokens the layers' products take 24 N C C L FLOP, and the
# loss with its gradient 2 N V 2 bytes. Row t of a head has 1 + t/64 tiles.
lockstep_says(predict_gpu 0 "Nothing here was measured.*\
layers, forward +5.57 TFLOP +8.98 +11.36.*attention, forward +0.84 G instr. +1.51.*gradient +6.59 GB.*tokens/s"
              $<TARGET_FILE:lockstep> predict model=gpt2 batch=32 device=h100)
lockstep_says(predict_no_gpu 1 "device=abacus: only an h100 has an estimate"
              $<TARGET_FILE:lockstep> predict model=gpt2 device=abacus)
lockstep_says(predict_cudnn 1 "nothing of cuDNN's kernels was counted"
              $<TARGET_FILE:lockstep> predict model=gpt2 device=h100
              attention=cudnn)
lockstep_says(predict_lists 0 "4 workers: ring is fastest; dps takes.*16 workers"
              $<TARGET_FILE:lockstep> predict model=gpt2 workers=4,16
              sync=dps,ring link=25gbit compute_ms=900)
# P = 124 M parameters. Ten of the 12 layers, of U parameters each, are gathered
# twice. Bytes: 3/4 (2 P + 10 U) 4.
lockstep_says(predict_shards 0 "zero +959.9 MB"
              $<TARGET_FILE:lockstep> predict model=gpt2 workers=4 sync=zero
              shard=3 link=10gbit compute_ms=900)
lockstep_says(predict_measures 0 "measuring how long .* compute_ms=.*tokens/s"
              $<TARGET_FILE:lockstep> predict model=nano layers=1 context=16
              workers=2 sync=ring link=1gbit threads=1
              data=${CMAKE_SOURCE_DIR}/README.md)
# The trainer predicts 117818112 bytes for stage 0 with the same words. The links
# carry 8 x 1 MiB of activations, and 256 x 256 floats of the tied embedding.
lockstep_says(predict_mesh 0 "pp2 +ring +fp32 +8 +8 .* 118 +0 +8.651 +0 .*mesh=pp2 \
sync=ring batch=8 accum=8.*0 +6.7 +6.7 +13.4 +0.3 +61.4 .*117.8 "
              $<TARGET_FILE:lockstep> predict model=micro mesh=pp2 link=1gbit
              compute_ms=160 global_batch=64 batch=8 threads=1 ahead=0)
# All meshes for 64 workers. Some do not fit into memory.
lockstep_says(predict_meshes 0 "8 on each of 8 hosts, 16gb.*training +cost.*dp32,tp2 \
+ring .*of 200 ways fit. The fastest: mesh="
              $<TARGET_FILE:lockstep> predict model=gpt2-xl hosts=8 memory=16gb
              link=25gbit inner=200gbit tokens=1e9 price=2.5 compute_ms=60000)
# The classifier has the FLOP of 4.5 layers, so the last stage gets one layer.
lockstep_says(predict_cut 0 "stages=4,4,3,1"
              $<TARGET_FILE:lockstep> predict model=gpt2 vocab_size=50257
              mesh=pp4 link=25gbit compute_ms=900 global_batch=64 batch=1)
lockstep_says(predict_none_fits 1 "memory=1gb: none of .* ways fits; the smallest \
takes .* MB; try: recompute=1"
              $<TARGET_FILE:lockstep> predict model=gpt2-xl hosts=1 slots=2
              memory=1gb compute_ms=900 inner=25gbit)
lockstep_says(fit_mesh 0 "dp2,pp4 .*ring +242.6 +242.6 +485.2 .* 6 +25"
              $<TARGET_FILE:lockstep> fit memory=4gb model=gpt2 mesh=dp2,pp4
              accum=8 threads=1)
lockstep_says(fit_mesh_no_parts 1 "sync=sps cannot train parts of a model"
              $<TARGET_FILE:lockstep> fit memory=4gb model=gpt2 mesh=dp2,pp4
              sync=sps)
lockstep_says(fit_mesh_workers 1 "mesh=tp2 has 2 ranks, not workers=4"
              $<TARGET_FILE:lockstep> fit memory=4gb model=gpt2 mesh=tp2
              workers=4)
lockstep_says(pipeline 0 "gpipe +710.6 +13.3 +11.1 +8 8.1f1b +763.4 +19.3 +11.1 \
+2 1.*pipeline.png"
              $<TARGET_FILE:lockstep> simulate pipeline=all stages=2
              forward_ms=26 backward_ms=51 hop_ms=8.8
              out=${CMAKE_BINARY_DIR}/pipeline)
lockstep_says(pipeline_no_multiple 1 "6 micro-batches .* 4 stages; try: 8 micro-batches"
              $<TARGET_FILE:lockstep> simulate pipeline=1f1b chunks=2 micro=6)
lockstep_says(pipeline_interleaved 1 "try: pipeline=1f1b chunks=2"
              $<TARGET_FILE:lockstep> simulate pipeline=interleaved)
lockstep_says(pipeline_times 1 "forward_ms=1,2: 2 times for 4 stages; try:"
              $<TARGET_FILE:lockstep> simulate pipeline=1f1b forward_ms=1,2)
# By the formulas, gpt2 takes 16 bytes a parameter with the ring, and 10 with a
# quarter of AdamW's state.
lockstep_says(fit 0 "ring +497.8 +497.8 +995.5 .* [0-9]+ +[0-9]+.*\
zero shard=1 +497.8 +497.8 +248.9 "
              $<TARGET_FILE:lockstep> fit memory=4gb model=gpt2 workers=4
              threads=1)
# Residuals take 995.5 MB, and those of sums, of a quarter, 248.9. The rest are
# messages, and a vector as long as a bucket. Zero is refused with shard=2.
lockstep_says(fit_squeeze 0 "squeeze=sign.*ring +497.8 +497.8 +995.5 +1288.0 .*\
zero shard=1 +497.8 +497.8 +248.9 +1026.6 .*shard=1.disk .* 239[^0-9a-z]*The memory"
              $<TARGET_FILE:lockstep> fit memory=24gb model=gpt2 workers=4
              threads=1 squeeze=sign)
# Zero, and the file of offload=disk, are refused.
lockstep_says(fit_squeeze_freeze 0 "ring [0-9. ]*[^0-9a-z]*The memory"
              $<TARGET_FILE:lockstep> fit memory=24gb model=gpt2 workers=4
              squeeze=sign freeze=100)
lockstep_says(fit_squeeze_other 1 "fit: sync=dataparallel cannot compress gradients"
              $<TARGET_FILE:lockstep> fit memory=24gb sync=dataparallel squeeze=topk)
lockstep_says(fit_squeeze_parts 1 "try: a mesh of replicas only"
              $<TARGET_FILE:lockstep> fit memory=24gb mesh=dp2,pp2 squeeze=topk)
lockstep_says(fit_nothing 0 "ring [^\n]* - +-\n"
              $<TARGET_FILE:lockstep> fit memory=1gb model=gpt2 workers=4)
lockstep_says(fit_unit 1 "memory=2: must be a number with a unit; try: memory=2gb"
              $<TARGET_FILE:lockstep> fit memory=2)
lockstep_says(fit_capitals 0 "its server" $<TARGET_FILE:lockstep> fit memory=24G
              model=nano workers=2)
lockstep_says(fit_alone 1 "sync=local: has one worker .* try: a backend of several"
              $<TARGET_FILE:lockstep> fit memory=2gb sync=local)
lockstep_says(fit_memory 1 "fit: memory= is missing; try: memory=2gb"
              $<TARGET_FILE:lockstep> fit model=gpt2)
lockstep_says(fit_batch 1 "fit: batch= is what fit looks for"
              $<TARGET_FILE:lockstep> fit memory=2gb batch=4)
lockstep_says(fit_key 1 "iface"
              $<TARGET_FILE:lockstep> fit memory=2gb iface=lo)
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME forecasts COMMAND ${Python3_EXECUTABLE} tests/forecasts.py
                                  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep ${CMAKE_SOURCE_DIR}
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(forecasts PROPERTIES TIMEOUT 900) # on a busy machine
endif()
