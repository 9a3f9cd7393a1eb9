using System.Net.Http.Headers;
using System.Net.Http.Json;
using Azure.Data.Tables;
using Azure.Storage.Blobs;
using Rowkey.Generated;

string Setting(string name) => Environment.GetEnvironmentVariable(name) ?? throw new InvalidOperationException($"{name} is not set.");

var http = new HttpClient();
http.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", Setting("ROWKEY_TOKEN"));
var url = Setting("ROWKEY_URL");
var client = new RowkeyClient(http) { BaseUrl = url };
var photo = Convert.FromBase64String("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==");
const string department = "NSwag";

// 1. Create. The fields without a value are sent as null.
var ids = new[] { "000501", "000502", "000503" };
foreach (var id in ids)
{
    var body = new EmployeesCreateBody { Department = department, EmployeeId = id, Email = $"n{id}@contoso.com", FirstName = "Ann", LastName = "Lee", Age = 30, HireDate = new DateTimeOffset(2026, 11, 20, 0, 0, 0, TimeSpan.Zero) };
    var created = await client.EmployeesCreateAsync(body);
    if (id == ids[0]) Console.WriteLine($"create: {created.StatusCode} {created.Result.Email} {created.Result.HireDate:yyyy-MM-dd} phone={created.Result.Phone ?? "none"}");
}

// 2. Read, and read again only if it has changed.
var read = await client.EmployeesGetAsync(department, ids[0]);
var etag = read.Headers["ETag"].Single();
try
{
    await client.EmployeesGetAsync(department, ids[0], if_None_Match: etag);
}
catch (ApiException unchanged) when (unchanged.StatusCode == 304)
{
    Console.WriteLine($"read: {read.StatusCode} {read.Result.FirstName}, then {unchanged.StatusCode}");
}

// 3. Patch under a condition: only what has a value is sent.
var patched = await client.EmployeesPatchAsync(new EmployeesPatchBody { Phone = "1" }, department, ids[0], if_Match: etag);
Console.WriteLine($"patch: {patched.StatusCode} {patched.Result.Phone} {patched.Result.Age}");

// 4. A stale condition.
try
{
    await client.EmployeesPatchAsync(new EmployeesPatchBody { Phone = "2" }, department, ids[0], if_Match: etag);
}
catch (ApiException<Problem> stale)
{
    Console.WriteLine($"stale: {stale.StatusCode} {stale.Result.Code}");
}

// 5. Page through a list.
var pages = new List<int>();
for (string? continuation = null; ;)
{
    var page = await client.EmployeesRangeAsync(department, top: 2, continuation: continuation, age: ["ge:30"]);
    pages.Add(page.Result.Items.Count);
    if (!page.Headers.TryGetValue("Link", out var link)) break;
    var query = new Uri(new Uri(url), link.Single().Split('<', '>')[1]).Query;
    continuation = System.Web.HttpUtility.ParseQueryString(query)["continuation"];
}
Console.WriteLine($"pages: {string.Join(" + ", pages)}");

// 6. Upload and download a photo.
var stored = await client.EmployeesFilePhotoPutAsync(new FileParameter(new MemoryStream(photo), "photo.png", "image/png"), department, ids[0]);
using var file = await client.EmployeesFilePhotoGetAsync(department, ids[0]);
var bytes = new MemoryStream();
await file.Stream.CopyToAsync(bytes);
var link2 = await client.EmployeesFilePhotoGrantAsync(department, ids[0]);
var direct = await new BlobClient(link2.Result.Url, new BlobClientOptions(BlobClientOptions.ServiceVersion.V2024_11_04)).DownloadContentAsync();
Console.WriteLine($"photo: {stored.Result.Type} {bytes.ToArray().SequenceEqual(photo)} {direct.Value.Content.ToArray().SequenceEqual(photo)}");

// 7. A grant, for the table client of Azure.
var own = new HttpClient();
own.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", Setting("ROWKEY_OWNER"));
var granted = await new RowkeyClient(own) { BaseUrl = url }.GrantsCreateAsync(new GrantsCreateBody { Entity = "employees", Scope = "own" });
var grant = granted.Result;
var table = new TableServiceClient(new Uri($"{grant.Endpoint}?{grant.Token}")).GetTableClient(grant.Table);
var row = await table.GetEntityAsync<TableEntity>(grant.Partition, grant.Row);
Console.WriteLine($"grant: {granted.StatusCode} {row.Value.GetString("email")} {grant.Permissions}");

// 8. An operation of the app.
var promoted = await client.PromoteAsync(new PromoteBody { Department = department, EmployeeId = ids[0], JobTitle = "Manager" });
Console.WriteLine($"operation: {promoted.Result.JobTitle} before={promoted.Result.Before ?? "none"}");

// 9. Several actions in one request.
var actions = new EmployeesBatchBody { Actions = ids.Skip(1).Select(id => new EmployeesAction { Delete = new EmployeesKey { Department = department, EmployeeId = id } }).ToList() };
var batch = await client.EmployeesBatchAsync(actions);
Console.WriteLine($"batch: {string.Join(" ", batch.Result.Results.Select(one => one.Status))}");

// 10. Delete under a condition, and a problem.
var current = (await client.EmployeesGetAsync(department, ids[0])).Headers["ETag"].Single();
var deleted = await client.EmployeesDeleteAsync(department, ids[0], if_Match: current);
try
{
    await client.EmployeesGetAsync(department, ids[0]);
}
catch (ApiException<Problem> missing)
{
    Console.WriteLine($"delete: {deleted.StatusCode}, then {missing.StatusCode} {missing.Result.Code}: {missing.Result.Detail}");
}

// Without a generator: JSON of undeclared length is refused until its length is known.
var hired = new { department, employeeId = "000504", email = "n000504@contoso.com", firstName = "Ann", lastName = "Lee", phone = (string?)null };
var refused = await http.PostAsJsonAsync($"{url}/api/employees", hired);
var content = JsonContent.Create(hired);
await content.LoadIntoBufferAsync();
var accepted = await http.PostAsync($"{url}/api/employees", content);
Console.WriteLine($"JsonContent: {(int)refused.StatusCode}, then {(int)accepted.StatusCode}");

namespace Rowkey.Generated
{
    /// <summary>A null in a PATCH removes the field, so what has no value is not sent.</summary>
    public partial class RowkeyClient
    {
        static partial void UpdateJsonSerializerSettings(System.Text.Json.JsonSerializerOptions settings) =>
            settings.DefaultIgnoreCondition = System.Text.Json.Serialization.JsonIgnoreCondition.WhenWritingNull;
    }
}
