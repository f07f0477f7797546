using System.Collections;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Text.Json;
using System.Text.Json.Serialization;
using System.Text.RegularExpressions;

namespace WideNet;

internal enum Kind { Book, Tool, Food }

internal sealed record Line(string Name, int Count, decimal Price, Kind Kind, Dictionary<string, double> Weights);

internal sealed record Order(int Id, DateTime Made, string? Note, List<Line> Lines, Line[]? More);

[JsonSerializable(typeof(Order))]
internal sealed partial class OrderContext : JsonSerializerContext;

internal static class Orders
{
    public static Order[] Sample { get; } = Enumerable.Range(0, 16).Select(Make).ToArray();

    private static Order Make(int id) => new(id, DateTime.UnixEpoch.AddHours(id), id % 3 == 0 ? null : $"note {id} äöü",
        Enumerable.Range(0, 6).Select(i => MakeLine(id + i)).ToList(), id % 2 == 0 ? [MakeLine(id)] : null);

    private static Line MakeLine(int i) => new($"line {i}", i, i * 1.25m, (Kind)(i % 3),
        new Dictionary<string, double> { ["net"] = i * 0.5, ["gross"] = i * 0.75 });
}

internal static class JsonPhases
{
    private static readonly JsonSerializerOptions Options = new()
    {
        PropertyNamingPolicy = JsonNamingPolicy.CamelCase,
        Converters = { new JsonStringEnumConverter() },
    };

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Reflection(int seed)
    {
        string text = JsonSerializer.Serialize(Orders.Sample[seed & 15], Options);
        return JsonSerializer.Deserialize<Order>(text, Options)!.Lines.Count + text.Length;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long SourceGenerated(int seed)
    {
        byte[] text = JsonSerializer.SerializeToUtf8Bytes(Orders.Sample[seed & 15], OrderContext.Default.Order);
        return JsonSerializer.Deserialize(text, OrderContext.Default.Order)!.Lines.Count + text.Length;
    }
}

internal static partial class RegexPhases
{
    private const string Pattern = @"(?<day>\d{1,2})\.(?<month>\d{1,2})\.(?<year>\d{4})|(\w+)@(\w+\.)+(com|org)|""([^""\\]|\\.)*""";
    private static readonly Regex Slow = new(Pattern);
    private static readonly Regex Fast = new(Pattern, RegexOptions.Compiled);

    [GeneratedRegex(Pattern)]
    private static partial Regex Generated();

    private static readonly string Text = string.Concat(Enumerable.Repeat(
        "on 24.12.1998 somebody@mail.example.org wrote \"a \\\"quoted\\\" text\" and then 1.1.2000 nothing@all ", 10));

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Interpreted(int seed) => Slow.Matches(Text, seed & 63).Count;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Compiled(int seed) => Fast.Matches(Text, seed & 63).Sum(match => match.Groups.Count);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long SourceGenerated(int seed) => Generated().Replace(Text, match => match.Value.ToUpperInvariant(), seed & 63).Length;
}

internal static class LinqPhases
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Objects(int seed)
    {
        var groups =
            from order in Orders.Sample
            from line in order.Lines
            where (line.Count + seed) % 5 != 0
            orderby line.Price descending, line.Name
            group (order.Id, line.Price) by line.Kind into kind
            select new { kind.Key, Sum = kind.Sum(pair => pair.Price), Most = kind.MaxBy(pair => pair.Id) };
        return groups.ToDictionary(g => g.Key, g => (g.Sum, g.Most)).Count +
               Orders.Sample.SelectMany(o => o.Lines).Zip(Enumerable.Range(seed, 50)).Distinct().Skip(3).Aggregate(0, (sum, p) => sum ^ p.Second);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Expressions(int seed)
    {
        // An IQueryable rewrites its expression tree and compiles or interprets it each time.
        IQueryable<Order> orders = Orders.Sample.AsQueryable();
        return orders.Where(order => order.Id > seed % 7).OrderBy(order => order.Made).Select(order => order.Lines.Count).Sum();
    }
}

/// <summary>Identifiers of other scripts, which the compiler allows and tools must keep.</summary>
internal static class Größen
{
    private struct Länge<Ширина>
    {
        public long 値;
        public Ширина? Прочее;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Übermaß(int seed)
    {
        long sum = 0;
        for (int i = 0; i < 50; i++)
            sum += Вычислить(new Länge<string> { 値 = i + seed, Прочее = "ж" }) + 計算する<int>(i);
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Вычислить(Länge<string> λ)
    {
        long σ = 0;
        for (int i = 0; i < 200; i++)
            σ += (λ.値 * i) % 17 + λ.Прочее!.Length;
        return σ;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long 計算する<型>(int 数)
    {
        long 和 = 0;
        for (int i = 0; i < 200; i++)
            和 ^= (和 << 1) + 数 * i + Unsafe.SizeOf<型>();
        return 和;
    }
}
