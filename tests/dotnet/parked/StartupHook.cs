// A startup hook for tests of `profcpu load`: creates the file that HOOK_FILE names.
internal static class StartupHook
{
    public static void Initialize()
    {
        File.WriteAllText(Environment.GetEnvironmentVariable("HOOK_FILE") ?? "hook", Environment.ProcessId.ToString());
    }
}
