using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Stacks;

/// <summary>Into a library without frame pointers, and back into managed code.</summary>
internal static unsafe class Native
{
    private const string Inside = "burn_outer;burn_middle;burn_inner";

    public static readonly Mode[] Modes =
    [
        new("pinvoke", Invoke.Run, "Invoke::Run;Invoke::Loop;Invoke::Call;...;burn_here;" + Inside + ";burn_leaf"),
        new("nativesin", NativeSin.Run, "NativeSin::Run;NativeSin::Loop;NativeSin::Call;...;burn_sin*") { Leaves = ["burn_sin libm"] },
        new("callback", Callback.Run, "Callback::Run;Callback::Loop;Callback::Call;...;" + Inside + ";...;Callback::Called;Callback::Inner;Work::Burn*"),
        new("pointer", Pointer.Run, "Pointer::Run;Pointer::Loop;Pointer::Call;...;" + Inside + ";...;Pointer::Called;Pointer::Inner;Work::Burn*"),
    ];

    private delegate long Back(long n);

    // With the error kept there is a stub between; without it compiled code calls the function itself.
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
        public static void Run()
        {
            while (!Program.Stop)
                Loop(3);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Loop(long sum)
        {
            for (int i = 0; i < 100; i++)
                sum += Call(sum);
            Work.Keep(sum);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Call(long n) => Here(n) + 1;
    }

    private static class NativeSin
    {
        public static void Run()
        {
            while (!Program.Stop)
                Loop(3);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Loop(double sum)
        {
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

        public static void Run()
        {
            Trace.Begin("callback");
            while (!Program.Stop)
                Loop(3);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Loop(long sum)
        {
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
        public static void Run()
        {
            Trace.Begin("pointer");
            while (!Program.Stop)
                Loop(3);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Loop(long sum)
        {
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
