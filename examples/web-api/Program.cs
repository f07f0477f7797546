// Routes for the classic experiments with a .NET service; README.md in this folder explains each one.
using System.Globalization;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using WebApi;

int port = args.Length > 0 ? int.Parse(args[0], CultureInfo.InvariantCulture) : 0;

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.ConfigureKestrel(kestrel => kestrel.Listen(System.Net.IPAddress.Loopback, port));

WebApplication app = builder.Build();

app.MapGet("/", () => Results.Text("ok\n"));
app.MapGet("/cpu", () => Results.Text(Cpu.Burn(milliseconds: 100)));
app.MapGet("/wait", () => Results.Text(Waiting.BlockOnDelay(milliseconds: 100)));
app.MapGet("/blocking-threads", (int? threads, int? ms) =>
    Results.Text(Waiting.BlockThreads(threads ?? 20, ms ?? 1000)));
app.MapGet("/high-cpu", (double? seconds) => Results.Text(Cpu.BurnAllCores(seconds ?? 5)));
app.MapGet("/memory-leak", (int? kb) => Results.Text(Memory.Leak(kb ?? 1024)));

app.Lifetime.ApplicationStarted.Register(() =>
{
    var addresses = app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>();
    Console.WriteLine($"listening on {addresses!.Addresses.First()} pid {Environment.ProcessId}");
});
app.Run();
