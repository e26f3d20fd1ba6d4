lockstep_library(data
  FILES core/data/bpe.c core/data/bpe_encode.c core/data/data.c
        core/data/token_file.c core/data/headers.c
        core/data/loader.c core/data/prepare_text.c
        core/data/symbols.c core/data/tokens.c core/data/wordpiece.c
  LINKS base PkgConfig::UTF8PROC Threads::Threads)
lockstep_test(bpe LINKS data)
lockstep_test(data LINKS data)
lockstep_test(data_source LINKS data)
lockstep_test(prepare LINKS data)
lockstep_test(wordpiece LINKS data)
include(tests/fuzz/fuzz.cmake)
lockstep_fuzz(bpe LINKS data)
lockstep_fuzz(shard LINKS data)
lockstep_fuzz(wordpiece LINKS data)
