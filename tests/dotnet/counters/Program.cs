// Counters and meters of known values. Callbacks that a runtime calls once per interval make them, so that no clock matters.
// usage: counters SECONDS [EXIT_STATUS]
using System.Diagnostics.Metrics;
using System.Diagnostics.Tracing;

double seconds = args.Length > 0 ? double.Parse(args[0]) : 600;
using Known events = new();
using Meter known = new("Known.Meter", "1.2", [new("area", "north")]), many = new("Known.Many"), broken = new("Known.Broken");
using Meter both = new("Known.Both");
using Both bothEvents = new();

long requests = 0, observed = 0;
Histogram<double> latency = known.CreateHistogram<double>("latency", "ms");
Counter<long> hits = known.CreateCounter<long>("hits", "{hit}");
UpDownCounter<int> queued = known.CreateUpDownCounter<int>("queued");
known.CreateObservableGauge("temperature", Measurement<double> () =>
{
    // Once per interval: 100 values of known percentiles, and 9 hits.
    for (int i = 1; i <= 100; i++)
        latency.Record(i, new KeyValuePair<string, object?>("route", "/a"));
    hits.Add(9);
    queued.Add(++observed % 2 == 0 ? 4 : -1);
    return new Measurement<double>(21.5, new("room", "a,b"), new("floor", 2));
}, "Cel", "how warm it is", [new("sensor", "s1")]);
known.CreateObservableCounter("requests", () =>
{
    requests++;
    return new Measurement<long>[] { new(requests * 7, new KeyValuePair<string, object?>("route", "/a")), new(requests * 3, new KeyValuePair<string, object?>("route", "/b")) };
}, "{request}");
known.CreateObservableUpDownCounter("level", () => -12.25);
many.CreateObservableGauge("series", () => Enumerable.Range(0, 40).Select(i => new Measurement<int>(i, new KeyValuePair<string, object?>("i", i))));
broken.CreateObservableGauge<int>("broken", int () => throw new InvalidOperationException("no value today"));
both.CreateObservableGauge("as-meter", () => 1);

Console.WriteLine($"working pid {Environment.ProcessId}");
Thread.Sleep(TimeSpan.FromSeconds(seconds));
return args.Length > 1 ? int.Parse(args[1]) : 0;

[EventSource(Name = "Known-Events")]
sealed class Known : EventSource
{
    readonly List<DiagnosticCounter> counters = [];
    EventCounter? mean;
    long total;

    protected override void OnEventCommand(EventCommandEventArgs command)
    {
        if (command.Command != EventCommand.Enable || counters.Count > 0)
            return;
        mean = new EventCounter("mean", this) { DisplayName = "Mean of two" };
        counters.Add(mean);
        counters.Add(new PollingCounter("level", this, () =>
        {
            mean.WriteMetric(10);
            mean.WriteMetric(20);
            return 42.5;
        }) { DisplayName = "Level", DisplayUnits = "MB" });
        counters.Add(new IncrementingPollingCounter("sold", this, () => total += 100) { DisplayName = "Sold", DisplayRateTimeScale = TimeSpan.FromSeconds(1) });
        PollingCounter tagged = new("tagged", this, () => 1e-7) { DisplayName = "Tagged, \"it\"" };
        tagged.AddMetadata("shop", "main");
        counters.Add(tagged);
    }
}

[EventSource(Name = "Known.Both")]
sealed class Both : EventSource
{
    PollingCounter? counter;

    protected override void OnEventCommand(EventCommandEventArgs command) =>
        counter ??= new PollingCounter("as-event", this, () => 2) { DisplayName = "As event" };
}
