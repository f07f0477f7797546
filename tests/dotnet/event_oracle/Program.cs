// Compares the lines of `profcpu events --raw FILE` on stdin with what TraceEvent reads from the same file.
// usage: event_oracle FILE <LINES   one line for each difference, at most 20; then the counts. Exit status 1: differences.
//        event_oracle FILE names    one line for each address in a stack: ADDRESS SAMPLES MODULE!NAME, as TraceEvent names it
//
// TraceEvent sorts events by time, so events are matched by thread, time, provider and number. Its names of the runtime's
// fields differ from the manifest for some events. Values of equal names are compared, and all bytes of each payload.
using System.Collections;
using System.Diagnostics;
using System.Globalization;
using System.Reflection;
using System.Text.Json;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Etlx;
using Microsoft.Diagnostics.Tracing.EventPipe;
using Microsoft.Diagnostics.Tracing.Parsers;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;

if (args is [var file, "names"])
{
    var counts = new Dictionary<ulong, (int Samples, string Name)>();
    using var log = new TraceLog(TraceLog.CreateFromEventPipeDataFile(file, file + ".etlx"));
    foreach (var e in log.Events)
        for (var s = e.CallStack(); s != null; s = s.Caller)
            counts[s.CodeAddress.Address] =
                (counts.GetValueOrDefault(s.CodeAddress.Address).Samples + 1, $"{s.CodeAddress.ModuleName}!{s.CodeAddress.FullMethodName}");
    foreach (var (address, (samples, name)) in counts)
        Console.WriteLine($"{address:x} {samples} {name}");
    return counts.Count > 0 ? 0 : 1;
}

var expected = new Dictionary<string, Queue<JsonElement>>();
int ours = 0, theirs = 0, differences = 0, values = 0, unnamed = 0, wrong = 0, stacks = 0;

for (string? line; (line = Console.In.ReadLine()) != null; ours++)
{
    var e = JsonDocument.Parse(line).RootElement;
    string key = Key(e.GetProperty("thread").GetInt64(), e.GetProperty("time_ns").GetInt64(),
                     e.GetProperty("provider").GetString()!, e.GetProperty("id").GetInt32());
    if (!expected.TryGetValue(key, out var queue))
        expected[key] = queue = new();
    queue.Enqueue(e);
}

using var source = new EventPipeEventSource(args[0]);
_ = new SampleProfilerTraceEventParser(source);
_ = new TplEtwProviderTraceEventParser(source);
source.Clr.All += _ => { };
new ClrRundownTraceEventParser(source).All += _ => { };
source.Dynamic.All += _ => { };
var ticks = typeof(TraceEvent).GetProperty("TimeStampQPC", BindingFlags.Instance | BindingFlags.NonPublic | BindingFlags.Public)!;
var record = typeof(TraceEvent).GetField("eventRecord", BindingFlags.Instance | BindingFlags.NonPublic)!;
source.AllEvents += Compare;
source.Process();
foreach (var queue in expected.Values)
    foreach (var e in queue)
        Differ($"only ours: {e}");
if (ours != theirs)
    Differ($"{ours} events, TraceEvent {theirs}");
Console.WriteLine($"{theirs} events, {values} values, {unnamed} of TraceEvent's names are not ours, {wrong} wrong in TraceEvent, {stacks} stacks; " +
                  $"TraceEvent lost {source.EventsLost}; {differences} differences");
return differences == 0 && theirs > 0 ? 0 : 1;

static string Key(long thread, long time, string provider, int id) => $"{thread} {time} {provider} {id}";

// TraceEvent gives each kind of GCDynamic events (39) a number of its own, from 65535 down.
static int Number(TraceEvent e) => e.ProviderName == "Microsoft-Windows-DotNETRuntime" && (int)e.ID > 65000 ? 39 : (int)e.ID;

// Fields that TraceEvent 4.0.0 reads wrongly: those of MethodDetails and JitInstrumentationDataVerbose from wrong offsets,
// and words of GC mechanisms as enumerations of single bits.
static bool IsWrongInTraceEvent(int id, string name) =>
    (id == 72 && name is "TypeParameterCount" or "LoaderModuleID" or "TypeParameters") ||
    (id == 298 && name.StartsWith("Method") && name != "MethodFlags") ||
    (id == 204 && name is "CompactMechanisms" or "ExpandMechanisms");

// TraceEvent leaves out the tier and the extent of a method.
static JsonElement Masked(JsonElement flags) => JsonSerializer.SerializeToElement(flags.GetUInt32() & 0x7f);

void Differ(string what)
{
    if (++differences <= 20)
        Console.WriteLine(what.Length > 600 ? what[..600] : what);
}

void Compare(TraceEvent e)
{
    theirs++;
    string key = Key(e.ThreadID, (long)ticks.GetValue(e)!, e.ProviderName, Number(e));
    if (!expected.TryGetValue(key, out var queue) || queue.Count == 0)
    {
        Differ($"only TraceEvent's: {key} {e.EventName}");
        return;
    }
    var our = queue.Dequeue();
    string raw = "0x" + Convert.ToHexStringLower(e.EventData() ?? []);
    if (our.GetProperty("raw").GetString() != raw)
        Differ($"{key} {e.EventName}: bytes {our.GetProperty("raw")}, TraceEvent {raw}");
    if (our.GetProperty("version").GetInt32() != e.Version)
        Differ($"{key}: version {our.GetProperty("version")}, TraceEvent {e.Version}");
    CompareStack(key, our, e);
    if (!our.TryGetProperty("payload", out var payload))
        return;
    var fields = payload.EnumerateObject().GroupBy(f => f.Name, StringComparer.OrdinalIgnoreCase)
                        .ToDictionary(g => g.Key, g => g.First().Value, StringComparer.OrdinalIgnoreCase);
    for (int i = 0; i < e.PayloadNames.Length; i++)
    {
        if (!fields.TryGetValue(e.PayloadNames[i], out var value))
            unnamed++;
        else if (IsWrongInTraceEvent(Number(e), e.PayloadNames[i]))
            wrong++;
        else if (!IsEqual(e.PayloadNames[i] == "MethodFlags" && e.PayloadValue(i) is Enum ? Masked(value) : value, e.PayloadValue(i)))
            Differ($"{key} {e.EventName}.{e.PayloadNames[i]}: {value}, TraceEvent {e.PayloadValue(i)} ({e.PayloadValue(i)?.GetType()})");
        else
            values++;
    }
}

// An extended item of the event's record has the stack, behind 8 unused bytes.
unsafe void CompareStack(string key, JsonElement our, TraceEvent e)
{
    var addresses = new List<string>();
    byte* header = (byte*)Pointer.Unbox(record.GetValue(e)!);
    ushort count = *(ushort*)(header + 84);
    byte* items = *(byte**)(header + 88);
    for (int i = 0; i < count; i++, items += 16)
    {
        if (*(ushort*)(items + 2) != 6)
            continue;
        ulong* stack = *(ulong**)(items + 8) + 1;
        for (int k = 0; k < (*(ushort*)(items + 6) - 8) / 8; k++)
            addresses.Add($"0x{stack[k]:x}");
    }
    // TraceEvent hides the stacks of events that describe methods.
    if (addresses.Count == 0)
        return;
    stacks++;
    var ours = our.TryGetProperty("stack", out var s) ? s.EnumerateArray().Select(a => a.GetString()!) : [];
    if (!ours.SequenceEqual(addresses))
        Differ($"{key} {e.EventName}: stack {s}, TraceEvent {string.Join(' ', addresses)}");
}

static bool IsEqual(JsonElement our, object? their)
{
    switch (their)
    {
        case null:
            return false;
        case string text:
            return our.ValueKind == JsonValueKind.String && our.GetString() == text;
        case bool b:
            return our.ValueKind == (b ? JsonValueKind.True : JsonValueKind.False) ||
                   (our.ValueKind == JsonValueKind.Number && our.GetUInt64() != 0 == b);
        case float or double:
            double real = Convert.ToDouble(their, CultureInfo.InvariantCulture);
            return our.ValueKind == JsonValueKind.Number
                ? their is float f ? (float)our.GetDouble() == f : our.GetDouble() == real
                : our.GetString() == real.ToString(CultureInfo.InvariantCulture);
        case Guid guid:
            return our.GetString() == guid.ToString();
        case DateTime time:
            return our.GetString() == time.ToUniversalTime().ToString("yyyy-MM-dd'T'HH:mm:ss.fffffff'Z'", CultureInfo.InvariantCulture);
        case byte[] bytes:
            return our.GetString() == "0x" + Convert.ToHexStringLower(bytes);
        case IDictionary<string, object> fields:
            return our.ValueKind == JsonValueKind.Object && fields.Count == our.EnumerateObject().Count() &&
                   fields.All(f => our.TryGetProperty(f.Key, out var value) && IsEqual(value, f.Value));
        case IEnumerable items when our.ValueKind == JsonValueKind.Array:
            var list = items.Cast<object>().ToList();
            return list.Count == our.GetArrayLength() && list.Zip(our.EnumerateArray()).All(p => IsEqual(p.Second, p.First));
        case Enum:
            return our.GetInt64() == Convert.ToInt64(their, CultureInfo.InvariantCulture);
        case ulong or UIntPtr:
            return our.GetUInt64() == Convert.ToUInt64(their.ToString(), CultureInfo.InvariantCulture);
        case IntPtr pointer:
            return unchecked((long)our.GetUInt64()) == pointer;
        default:
            // TraceEvent shows some unsigned fields as signed ones.
            return our.ValueKind == JsonValueKind.Number &&
                   (our.TryGetInt64(out long x) ? x : unchecked((long)our.GetUInt64())) is long n &&
                   (n == Convert.ToInt64(their, CultureInfo.InvariantCulture) ||
                    unchecked((int)n) == Convert.ToInt64(their, CultureInfo.InvariantCulture));
    }
}
