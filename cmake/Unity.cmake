# polyphase_unity(TARGET): the files of a target are compiled two dozen at a time, by one file that includes them in their order.
#
# Half of the time to compile one of our files goes into the headers it shares with its neighbours, and much of the rest into
# inline functions that its neighbours instantiate as well. The presets that build everything do this (release, asan, tsan);
# dev and clang compile file by file, for whoever writes code. Measured on src/import/torch, 50 files with g++ -O2: 200 s one by one,
# 78 s by tens, 63 s by 25; on src/ops and src/passes 148 s by twelves, 133 s by 24, where one compiler stays under 0.5 GB.
#
# The names in a file's anonymous namespace must differ from those of its neighbours, so they say what the file is about
# (`fold_pad`, not `fold`); any two dozen files of a target must go together, because the next new file shifts them. The kernels
# (IsaObjects.cmake) stay as they are: their time goes into optimising.
option(POLYPHASE_UNITY "Compile the files of a target several at a time" OFF)
set(POLYPHASE_UNITY_BATCH 24 CACHE STRING "How many; 0: all")

if(POLYPHASE_UNITY)
  # A local variable may be called like another file's function. Within one file, dev, clang and clang-tidy see it.
  target_compile_options(polyphase_flags INTERFACE -Wno-shadow)
endif()

function(polyphase_unity target)
  if(POLYPHASE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${POLYPHASE_UNITY_BATCH})
  endif()
endfunction()
