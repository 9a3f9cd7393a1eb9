using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using Azure.Data.Tables;

namespace Existing;

/// <summary>Reads tables with the classes of the app, and prints a hash of the rows of each kind, as <see cref="RowJson"/> has them.</summary>
sealed class ReadBack(TableServiceClient service, TextWriter? copy)
{
    public async Task Print(string table)
    {
        switch (table)
        {
            case "ShopData":
                await Print<Customer>(table, "RowKey eq 'customer'");
                await Print<Order>(table, "RowKey ge 'order-' and RowKey lt 'order.'");
                await Print<OrderLine>(table, "RowKey ge 'line-' and RowKey lt 'line.'");
                break;
            case "RequestLog":
                await Print<LoggedRequest>(table, "");
                break;
            case "Identity":
                await Print<Profile>(table, "RowKey eq 'profile'");
                await Print<Login>(table, "RowKey ge 'login_' and RowKey lt 'login`'");
                await Print<Claim>(table, "RowKey ge 'claim_' and RowKey lt 'claim`'");
                await Print<UserIndex>(table, "RowKey eq 'index'");
                break;
            case "Employees":
                await Print<Employee>(table, "");
                break;
            case "EmployeeIndex":
                await Print<EmployeeIds>(table, "");
                break;
            default:
                throw new ArgumentException($"No class reads {table}.");
        }
    }

    async Task Print<T>(string table, string filter) where T : class, ITableEntity
    {
        using var hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        var rows = 0;
        await foreach (var row in service.GetTableClient(table).QueryAsync<T>(filter))
        {
            var line = RowJson.Of(row) + "\n";
            hash.AppendData(Encoding.UTF8.GetBytes(line));
            copy?.Write(line);
            rows++;
        }
        var sha256 = Convert.ToHexStringLower(hash.GetHashAndReset());
        Console.WriteLine(JsonSerializer.Serialize(new { table, kind = typeof(T).Name, rows, sha256 }));
    }
}
