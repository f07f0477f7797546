using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace WideNet;

/// <summary>Native code and back: both kinds of P/Invoke, a delegate as callback, and a method that native code calls directly.</summary>
internal static unsafe partial class NativePhases
{
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    private delegate int Compare(int* a, int* b);

    [DllImport("libc", EntryPoint = "qsort")]
    private static extern void Sort(int* from, nuint count, nuint size, Compare compare);

    [DllImport("libc", EntryPoint = "qsort")]
    private static extern void SortDirectly(int* from, nuint count, nuint size, delegate* unmanaged[Cdecl]<int*, int*, int> compare);

    [LibraryImport("libc", EntryPoint = "strtol", StringMarshalling = StringMarshalling.Utf8)]
    private static partial nint ToNumber(string text, nint end, int numberBase);

    [DllImport("libm.so.6", EntryPoint = "cbrt")]
    private static extern double CubeRoot(double of);

    private static readonly Compare Comparer = (a, b) => a->CompareTo(*b);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Invoke(int seed)
    {
        double sum = 0;
        for (int i = 0; i < 100; i++)
            sum += CubeRoot(i + seed) + ToNumber("12345", 0, 10);
        return (long)sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Callbacks(int seed)
    {
        int* numbers = stackalloc int[200];
        Fill(numbers, seed);
        Sort(numbers, 200, sizeof(int), Comparer);
        return numbers[0];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long UnmanagedCallers(int seed)
    {
        int* numbers = stackalloc int[200];
        Fill(numbers, seed);
        SortDirectly(numbers, 200, sizeof(int), &CompareDirectly);
        return numbers[199];
    }

    [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
    private static int CompareDirectly(int* a, int* b) => a->CompareTo(*b);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Fill(int* numbers, int seed)
    {
        for (int i = 0; i < 200; i++)
            numbers[i] = (i * 7919 + seed) % 1009;
    }
}

internal static class ExceptionPhases
{
    private sealed class Refused(int depth) : Exception($"at {depth}")
    {
        public readonly int Depth = depth;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long ThrowAndCatch(int seed)
    {
        try
        {
            return Descend(8, seed);
        }
        catch (Refused refused) when (refused.Depth == 0)
        {
            return refused.StackTrace!.Length;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Descend(int depth, int seed)
    {
        try
        {
            return depth == 0 ? throw new Refused(depth) : Descend(depth - 1, seed) + 1;
        }
        catch (InvalidOperationException)
        {
            return -1;
        }
        finally
        {
            Clean(seed);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Clean(int seed)
    {
        long sum = seed;
        for (int i = 0; i < 50; i++)
            sum = sum * 31 + i;
        return sum;
    }
}
