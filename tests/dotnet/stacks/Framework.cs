using System.Runtime.CompilerServices;
using System.Text.Json;
using System.Text.Json.Serialization;
using System.Text.RegularExpressions;

namespace Stacks;

/// <summary>Precompiled framework code between our frames: JSON, regular expressions, sorting. Each also calls our code back.</summary>
internal static class Framework
{
    public static readonly Mode[] Modes =
    [
        new("json", Json.Middle, "Json::Middle;Json::Serialize*", "Json::Middle;Json::Serialize;Json::Serialize*", // the finally block of an inlined method
            "Json::Middle;Json::Serialize;...;Json+Converter::Write*;Work::Burn*"),
        new("regex", Regexes.Middle, "Regexes::Middle;Regexes::Replace*",
            "Regexes::Middle;Regexes::Replace;...;Regexes::Found*;Work::Burn*"),
        new("sort", Sorting.Middle, "Sorting::Middle;Sorting::Sort*",
            "Sorting::Middle;Sorting::Sort;...;Sorting+Comparer::Compare;Work::Burn*"),
    ];

    private static class Json
    {
        private sealed record Item(string Name, int Count, double Price, Slow Slow);

        private sealed record Slow(int N);

        private sealed class Converter : JsonConverter<Slow>
        {
            public override Slow Read(ref Utf8JsonReader reader, Type type, JsonSerializerOptions options) => new(reader.GetInt32());

            [MethodImpl(MethodImplOptions.NoInlining)]
            public override void Write(Utf8JsonWriter writer, Slow value, JsonSerializerOptions options) => writer.WriteNumberValue(Work.Burn(value.N));
        }

        private static readonly JsonSerializerOptions Options = new() { Converters = { new Converter() } };
        private static readonly Item[] Items =
            Enumerable.Range(0, 20).Select(i => new Item($"the name of item {i}", i, i * 1.37, new Slow(i))).ToArray();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(Serialize() + 1);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Serialize() => JsonSerializer.Serialize(Items, Options).Length + 1;
    }

    private static class Regexes
    {
        private static readonly Regex Mail = new(@"(\w+)@(\w+\.)+(com|org)|""([^""\\]|\\.)*""");
        private static readonly string Text = string.Concat(Enumerable.Repeat("somebody@mail.example.org wrote \"a \\\"quoted\\\" text\", nothing@all ", 5));
        private static readonly MatchEvaluator Evaluator = Found;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(Replace() + 1);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Replace() => Mail.Replace(Text, Evaluator).Length + 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static string Found(Match match) => Work.Burn(match.Index) == 0 ? "" : "x";
    }

    private static class Sorting
    {
        private sealed class Comparer : IComparer<string>
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            public int Compare(string? a, string? b) => Work.Burn(a!.Length) == 0 ? 0 : string.CompareOrdinal(a, b);
        }

        private static readonly Comparer Ours = new();
        private static readonly string[] From = Enumerable.Range(0, 40).Select(i => $"{i * 7919 % 1009} {i}").ToArray(), To = new string[40];

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(Sort() + 1);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Sort()
        {
            From.CopyTo(To, 0);
            Array.Sort(To, Ours);
            From.CopyTo(To, 0);
            Array.Sort(To, StringComparer.CurrentCulture);
            return To.Length;
        }
    }
}
