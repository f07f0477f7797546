using System.Runtime.CompilerServices;

namespace Stacks;

/// <summary>Exceptions through several frames. Filters, finally and catch blocks are functions, called below the throwing frame.</summary>
internal static class Exceptional
{
    private const string Down = "Throwing::Middle;Throwing::Catches;Throwing::First;Throwing::Second;Throwing::Throws";

    public static readonly Mode[] Modes =
    [
        new("exceptions", Throwing.Middle, "Throwing::Middle;Throwing::Catches*", Down + "*", Down + ";...;Throwing::Catches;Throwing::Filter;Work::Burn*",
            Down + ";...;Throwing::Second;Throwing::Finally;Work::Burn*", Down + ";...;Throwing::Catches;Throwing::Caught;Work::Burn*",
            "Throwing::Middle;Throwing::Catches;...;Throwing::Catches;Throwing::Caught;Work::Burn*") { IsTraced = false }, // the runtime's stack traces omit the frames that the exception passed
    ];

    private static class Throwing
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(Catches(1) + 1);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Catches(long n)
        {
            try
            {
                return First(n);
            }
            catch (InvalidOperationException) when (Filter(n))
            {
                return Caught(n);
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long First(long n) => Second(n) + 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Second(long n)
        {
            try
            {
                return Throws(n) + 1;
            }
            finally
            {
                Finally(n);
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Throws(long n) => n > 0 ? throw new InvalidOperationException() : n;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static bool Filter(long n) => Work.Burn(n) + Work.Burn(n) != 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Finally(long n) => Work.Keep(Work.Burn(n) + Work.Burn(n));

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Caught(long n) => Work.Burn(n) + Work.Burn(n);
    }
}
