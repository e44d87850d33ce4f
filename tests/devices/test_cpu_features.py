from __future__ import annotations

from edgeflare.devices.cpu_features import features_for_kernels

EPYC = (
    "3dnowprefetch abm adx aes amd_ppin apic arat avx avx2 bmi1 bmi2 bpext clflush clwb clzero cmov"
    " cx16 cx8 de erms f16c fma fpu fsgsbase fxsr ht lahf_lm lm mca mce mmx movbe msr mtrr nx pae"
    " pat pclmulqdq pge pni popcnt pse rdrand rdseed sep sha_ni smap smep sse sse2 sse4_1 sse4_2"
    " sse4a ssse3 svm syscall topoext tsc umip vaes vme xsave xsavec"
)
CORTEX_A76 = (
    "aes asimd asimddp asimdhp asimdrdm atomics cpuid crc32 dcpop evtstrm fp fphp lrcpc pmull sha1"
    " sha2 ssbs"
)


def test_what_decides_kernels_is_kept_and_the_rest_is_not() -> None:
    assert features_for_kernels(EPYC.split()) == ("sse4_1", "avx", "f16c", "fma", "avx2")
    assert features_for_kernels(CORTEX_A76.split()) == ("asimd", "fphp", "asimdhp", "asimddp")
    assert features_for_kernels(()) == ()
