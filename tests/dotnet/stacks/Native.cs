using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Stacks;

/// <summary>Calls into a library without frame pointers, and back into managed code.</summary>
internal static unsafe class Native
{
    private const string Inside = "burn_outer;burn_middle;burn_inner";

    public static readonly Mode[] Modes =
    [
        new("pinvoke", Invoke.Loop, "Invoke::Loop;Invoke::Call;...;burn_here;" + Inside + ";burn_leaf"),
        new("nativesin", NativeSin.Loop, "NativeSin::Loop;NativeSin::Call;...;burn_sin*") { Leaves = ["burn_sin libm"] },
        new("callback", Callback.Loop, "Callback::Loop;Callback::Call;...;" + Inside + ";...;Callback::Called*;Callback::Inner;Work::Burn*"),
        new("pointer", Pointer.Loop, "Pointer::Loop;Pointer::Call;...;" + Inside + ";...;Pointer::Called*;Pointer::Inner;Work::Burn*"),
    ];

    private delegate long Back(long n);

    // With SetLastError the call goes through a stub; without it compiled code calls the function directly.
    [DllImport("burn", EntryPoint = "burn_outer", SetLastError = true)]
    private static extern long Outer(Back call, long n);

    [DllImport("burn", EntryPoint = "burn_outer")]
    private static extern long OuterDirectly(delegate* unmanaged[Cdecl]<long, long> call, long n);

    [DllImport("burn", EntryPoint = "burn_here")]
    private static extern long Here(long n);

    [DllImport("burn", EntryPoint = "burn_sin")]
    private static extern double SinOf(double from);

    private static class Invoke
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 100; i++)
                sum += Call(sum);
            Work.Keep(sum);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Call(long n) => Here(n) + 1;
    }

    private static class NativeSin
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            double sum = 3;
            for (int i = 0; i < 100; i++)
                sum += Call(sum);
            Work.Keep((long)sum);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static double Call(double n) => SinOf(n) + 1;
    }

    private static class Callback
    {
        private static readonly Back Kept = Called;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 100; i++)
                sum += Call(sum);
            Work.Keep(sum);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Call(long n) => Outer(Kept, n) + 1;

        private static long Called(long n) => Inner(n) + 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Inner(long n) => Work.Burn(n) + Work.Burn(n + 1);
    }

    private static class Pointer
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 100; i++)
                sum += Call(sum);
            Work.Keep(sum);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Call(long n) => OuterDirectly(&Called, n) + 1;

        [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
        private static long Called(long n) => Inner(n) + 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Inner(long n) => Work.Burn(n) + Work.Burn(n + 1);
    }
}
