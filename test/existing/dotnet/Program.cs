using Azure.Data.Tables;
using Existing;

/*
 * An app as it was before Rowkey: rows that .NET code writes with Azure.Data.Tables.
 *
 *   write [--rows 20000] [--seed 1]                      writes all tables, which must not exist yet; --rows is the size of ShopData
 *   write-beside --seconds N --log FILE [--seed 1]       changes ShopData as the app does, and logs what storage acknowledged
 *   read-back [--table NAME] [--rows-to FILE]            prints a hash of the rows of each kind, as its class reads them
 *
 * --connection, or AZURE_STORAGE_CONNECTION_STRING, is the account: by default the emulator at its usual ports.
 */
var mode = args.FirstOrDefault() ?? "";
var options = args.Skip(1).Chunk(2).ToDictionary(pair => pair[0].TrimStart('-'), pair => pair[^1]);
string? Option(string name) => options.GetValueOrDefault(name);
var seed = uint.Parse(Option("seed") ?? "1");
var clientOptions = new TableClientOptions();
if (mode == "write-beside") clientOptions.Retry.MaxRetries = 0;
var service = new TableServiceClient(
    Option("connection") ?? Environment.GetEnvironmentVariable("AZURE_STORAGE_CONNECTION_STRING") ?? "UseDevelopmentStorage=true",
    clientOptions);

switch (mode)
{
    case "write":
        var other = new OtherTables(seed);
        await Write("ShopData", new ShopData(seed).Rows(int.Parse(Option("rows") ?? "20000")));
        await service.GetTableClient("ShopData").UpdateEntityAsync(ShopData.OddNumbers, Azure.ETag.All);
        await Write("RequestLog", other.RequestLog(3_000));
        await Write("Identity", other.Identity(1_000));
        await Write("Employees", other.Employees(300));
        await Write("EmployeeIndex", other.EmployeeIndex(300));
        return 0;
    case "write-beside":
        using (var log = new StreamWriter(Option("log") ?? throw new ArgumentException("--log FILE is missing.")))
            await new WriteBeside(service.GetTableClient("ShopData"), seed, log)
                .Run(TimeSpan.FromSeconds(double.Parse(Option("seconds") ?? "10")));
        return 0;
    case "read-back":
        using (var copy = Option("rows-to") is { } path ? new StreamWriter(path) : null)
            foreach (var table in Option("table") is { } one ? [one] : new[] { "ShopData", "RequestLog", "Identity", "Employees", "EmployeeIndex" })
                await new ReadBack(service, copy).Print(table);
        return 0;
    default:
        Console.Error.WriteLine("Usage: write | write-beside | read-back");
        return 2;
}

async Task Write(string name, IEnumerable<ITableEntity> rows)
{
    const int MaxTransactionActions = 100;
    var table = service.GetTableClient(name);
    await table.CreateAsync();
    var count = 0;
    foreach (var partition in rows.GroupBy(row => row.PartitionKey))
        foreach (var batch in partition.Chunk(MaxTransactionActions))
        {
            await table.SubmitTransactionAsync(batch.Select(row => new TableTransactionAction(TableTransactionActionType.Add, row)));
            count += batch.Length;
        }
    Console.WriteLine($"{name}: {count} rows");
}
