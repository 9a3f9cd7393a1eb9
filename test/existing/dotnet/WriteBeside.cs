using Azure;
using Azure.Data.Tables;

namespace Existing;

/// <summary>
/// Changes ShopData as the app does while something else uses the table. Each line of the log is a change that storage has responded to:
/// {"at","op","status","etag","row"}. The row is as in the dumps: whole after an insert or a replace, what is changed after a merge, and the
/// keys after a delete. A status of 0 or from 500 is an unknown outcome; any other from 400 changed nothing. A partition is changed
/// by one writer, so its lines are in the order of its changes. Client retries are off: a second try would hide the outcome of the first.
/// </summary>
sealed class WriteBeside(TableClient table, uint seed, TextWriter log)
{
    const int Writers = 4;
    const int MaxTransactionActions = 100;
    /// <summary>Above all numbers of a table that no earlier run has changed.</summary>
    const int FirstCustomer = 900_000, FirstOrder = 50_000_000;

    readonly ShopData shop = new(seed);
    readonly Dictionary<string, int> counts = [];

    public async Task Run(TimeSpan time)
    {
        var partitions = Enumerable.Range(0, Writers).Select(_ => new SortedDictionary<string, SortedSet<string>>(StringComparer.Ordinal)).ToArray();
        var (lastCustomer, lastOrder) = (FirstCustomer, FirstOrder);
        await foreach (var row in table.QueryAsync<TableEntity>("PartitionKey ge 'C-' and PartitionKey lt 'C.'", select: ["PartitionKey", "RowKey"]))
        {
            var customer = NumberOf(row.PartitionKey);
            Known(partitions[customer % Writers], row.PartitionKey).Add(row.RowKey);
            lastCustomer = Math.Max(lastCustomer, customer);
            if (row.RowKey.StartsWith("order-")) lastOrder = Math.Max(lastOrder, NumberOf(row.RowKey));
        }
        Console.WriteLine("Writing");
        var until = DateTimeOffset.UtcNow + time;
        // The numbers of a writer have its remainder.
        int NextOf(int last, int writer) => (last / Writers + 1) * Writers + writer;
        await Task.WhenAll(partitions.Select((known, writer) =>
            Task.Run(() => Write(known, new Random((int)seed * Writers + writer), NextOf(lastCustomer, writer), NextOf(lastOrder, writer), until))));
        foreach (var (what, count) in counts.OrderBy(one => one.Key, StringComparer.Ordinal)) Console.WriteLine($"{what}: {count}");
    }

    static SortedSet<string> Known(SortedDictionary<string, SortedSet<string>> known, string partition) =>
        known.TryGetValue(partition, out var rows) ? rows : known[partition] = new(StringComparer.Ordinal);

    static int NumberOf(string key) => int.Parse(key.Split('-')[^1]);

    async Task Write(SortedDictionary<string, SortedSet<string>> known, Random random, int nextCustomer, int nextOrder, DateTimeOffset until)
    {
        while (DateTimeOffset.UtcNow < until)
        {
            var partition = known.Count == 0 ? "" : known.Keys.ElementAt(random.Next(known.Count));
            var choice = random.Next(100);
            if (partition == "" || choice < 5)
            {
                var customer = shop.CustomerOf(nextCustomer);
                customer.CreatedOn = DateTimeOffset.UtcNow;
                nextCustomer += Writers;
                await Apply(known, (TableTransactionActionType.Add, customer));
                continue;
            }
            var rows = known[partition];
            var orders = rows.Where(row => row.StartsWith("order-")).ToArray();
            if (choice < 35 || orders.Length == 0)
            {
                var order = shop.OrderOf(NumberOf(partition), nextOrder);
                var line = shop.LineOf(NumberOf(partition), nextOrder, 1);
                (order.CreatedOn, order.ShippedOn) = (DateTimeOffset.UtcNow, null);
                nextOrder += Writers;
                if (random.Next(2) == 0) await Apply(known, (TableTransactionActionType.Add, order));
                else await Apply(known, (TableTransactionActionType.Add, order), (TableTransactionActionType.Add, line));
            }
            else if (choice < 60) await Replace(known, partition, random.Next(4) == 0 ? "customer" : orders[random.Next(orders.Length)], random);
            else if (choice < 85)
            {
                var ofCustomer = random.Next(3) == 0 && rows.Contains("customer");
                var change = ofCustomer
                    ? new TableEntity(partition, "customer") { ["LoyaltyPoints"] = random.NextInt64(), ["LastLoginOn"] = DateTimeOffset.UtcNow }
                    : new TableEntity(partition, orders[random.Next(orders.Length)]) { ["Status"] = ((OrderStatus)random.Next(4)).ToString(), ["Discount"] = (double)random.Next(5) };
                await Apply(known, (TableTransactionActionType.UpdateMerge, change));
            }
            else if (choice < 98 || rows.Count > MaxTransactionActions)
                await Apply(known, (TableTransactionActionType.Delete, new TableEntity(partition, orders[random.Next(orders.Length)])));
            else
                await Apply(known, [.. rows.Select(row => (TableTransactionActionType.Delete, (ITableEntity)new TableEntity(partition, row)))]);
        }
    }

    /// <summary>Reads a row with its class, and replaces it: what the class does not declare is lost.</summary>
    async Task Replace(SortedDictionary<string, SortedSet<string>> known, string partition, string row, Random random)
    {
        try
        {
            ITableEntity? changed = row == "customer"
                ? (await table.GetEntityIfExistsAsync<Customer>(partition, row)) is { HasValue: true, Value: { } customer } ? customer : null
                : (await table.GetEntityIfExistsAsync<Order>(partition, row)) is { HasValue: true, Value: { } order } ? order : null;
            // Azure.Data.Tables does not write a number that is not finite.
            if (changed is Customer { Rating: { } rating } rated && !double.IsFinite(rating)) rated.Rating = null;
            if (changed is Customer one) (one.OrderCount, one.Discount, one.Phone) = (one.OrderCount + 1, random.Next(41) / 4.0, null);
            if (changed is Order other) (other.TotalCents, other.IsGift, other.Note) = (random.NextInt64(), !other.IsGift, $"Changed {DateTimeOffset.UtcNow:O}");
            if (changed is not null) await Apply(known, (TableTransactionActionType.UpdateReplace, changed));
        }
        catch (RequestFailedException)
        {
            // A read that fails changes nothing.
        }
    }

    async Task Apply(SortedDictionary<string, SortedSet<string>> known, params (TableTransactionActionType Type, ITableEntity Row)[] changes)
    {
        var status = 0;
        IReadOnlyList<Response> responses = [];
        try
        {
            var (type, row) = changes[0];
            responses = changes.Length > 1
                ? (await table.SubmitTransactionAsync(changes.Select(one => new TableTransactionAction(one.Type, one.Row, ETag.All)))).Value
                : [type switch
                {
                    TableTransactionActionType.Add => await table.AddEntityAsync(row),
                    TableTransactionActionType.UpdateMerge => await table.UpdateEntityAsync(row, ETag.All, TableUpdateMode.Merge),
                    TableTransactionActionType.UpdateReplace => await table.UpdateEntityAsync(row, row.ETag, TableUpdateMode.Replace),
                    _ => await table.DeleteEntityAsync(row.PartitionKey, row.RowKey, ETag.All),
                }];
        }
        catch (RequestFailedException error)
        {
            status = error.Status;
        }
        lock (log)
        {
            foreach (var (index, (type, row)) in changes.Index())
            {
                var response = responses.ElementAtOrDefault(index);
                var op = type switch
                {
                    TableTransactionActionType.Add => "insert",
                    TableTransactionActionType.UpdateMerge => "merge",
                    TableTransactionActionType.UpdateReplace => "replace",
                    _ => "delete",
                };
                var etag = response?.Headers.ETag is { } tag && op != "delete" ? $"\"{tag.ToString("G").Replace("\"", "\\\"")}\"" : "null";
                log.WriteLine($"{{\"at\":\"{DateTimeOffset.UtcNow:O}\",\"op\":\"{op}\",\"status\":{response?.Status ?? status},\"etag\":{etag},\"row\":{RowJson.Of(row)}}}");
                var what = $"{op} {response?.Status ?? status}";
                counts[what] = counts.GetValueOrDefault(what) + 1;
            }
            log.Flush();
        }
        foreach (var (type, row) in changes)
        {
            var rows = Known(known, row.PartitionKey);
            // A row of an unknown state is left alone.
            if (type == TableTransactionActionType.Delete || responses.Count == 0) rows.Remove(row.RowKey);
            else rows.Add(row.RowKey);
            if (rows.Count == 0) known.Remove(row.PartitionKey);
        }
        // Storage that does not respond would get a request for each row that is left.
        if (responses.Count == 0) await Task.Delay(100);
    }
}
