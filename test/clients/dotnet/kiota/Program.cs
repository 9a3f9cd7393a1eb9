using Azure.Data.Tables;
using Microsoft.Kiota.Abstractions;
using Microsoft.Kiota.Abstractions.Authentication;
using Microsoft.Kiota.Http.HttpClientLibrary;
using Microsoft.Kiota.Http.HttpClientLibrary.Middleware.Options;
using Rowkey.Kiota;
using Rowkey.Kiota.Models;

string Setting(string name) => Environment.GetEnvironmentVariable(name) ?? throw new InvalidOperationException($"{name} is not set.");

var url = Setting("ROWKEY_URL");
RowkeyClient Open(string token) =>
    new(new HttpClientRequestAdapter(new BaseBearerTokenAuthenticationProvider(new FixedToken(token))) { BaseUrl = url });
var api = Open(Setting("ROWKEY_TOKEN")).Api;
var photo = Convert.FromBase64String("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==");
const string department = "Kiota";
// The headers of one response: the ETag of an entity, or the link to the next page.
HeadersInspectionHandlerOption Inspect() => new() { InspectResponseHeaders = true };

// 1. Create.
var ids = new[] { "000601", "000602", "000603" };
foreach (var id in ids)
{
    var created = await api.Employees.PostAsync(new EmployeesCreateBody { Department = department, EmployeeId = id, Email = $"k{id}@contoso.com", FirstName = "Ann", LastName = "Lee", Age = 30, HireDate = new Date(2026, 11, 20) });
    if (id == ids[0]) Console.WriteLine($"create: {created?.Email} {created?.HireDate} phone={created?.Phone ?? "none"}");
}

// 2. Read, and read again only if it has changed.
var ann = api.Employees[department][ids[0]];
var headers = Inspect();
var read = await ann.GetAsync(request => request.Options.Add(headers));
var etag = headers.ResponseHeaders["ETag"].Single();
var unchanged = await ann.GetAsync(request => request.Headers.Add("If-None-Match", etag));
Console.WriteLine($"read: {read?.FirstName}, then {unchanged?.FirstName ?? "nothing"}");

// 3. Patch under a condition: only the assigned fields are sent.
var patched = await ann.PatchAsync(new EmployeesPatchBody { Phone = "1" }, request => request.Headers.Add("If-Match", etag));
Console.WriteLine($"patch: {patched?.Phone} {patched?.Age}");

// 4. A stale condition.
try
{
    await ann.PatchAsync(new EmployeesPatchBody { Phone = "2" }, request => request.Headers.Add("If-Match", etag));
}
catch (Problem stale)
{
    Console.WriteLine($"stale: {stale.ResponseStatusCode} {stale.Code}");
}

// 5. Page through a list.
var pages = new List<int>();
var list = api.Employees[department];
headers = Inspect();
var page = await list.GetAsync(request =>
{
    request.QueryParameters.Top = 2;
    request.QueryParameters.Age = ["ge:30"];
    request.Options.Add(headers);
});
for (; ; )
{
    pages.Add(page?.Items?.Count ?? 0);
    if (!headers.ResponseHeaders.TryGetValue("Link", out var link)) break;
    var next = new Uri(new Uri(url), link.Single().Split('<', '>')[1]).ToString();
    headers = Inspect();
    page = await list.WithUrl(next).GetAsync(request => request.Options.Add(headers));
}
Console.WriteLine($"pages: {string.Join(" + ", pages)}");

// 6. Upload and download a photo.
var stored = await ann.Photo.PutAsync(new MemoryStream(photo), "image/png");
using var file = await ann.Photo.GetAsync();
var bytes = new MemoryStream();
await file!.CopyToAsync(bytes);
Console.WriteLine($"photo: {stored?.Type} {bytes.ToArray().SequenceEqual(photo)}");

// 7. A grant, for the table client of Azure.
var grant = await Open(Setting("ROWKEY_OWNER")).Api.Grants.PostAsync(new GrantsCreateBody { Entity = "employees", Scope = "own" });
var table = new TableServiceClient(new Uri($"{grant!.Endpoint}?{grant.Token}")).GetTableClient(grant.Table);
var row = await table.GetEntityAsync<TableEntity>(grant.Partition, grant.Row);
Console.WriteLine($"grant: {row.Value.GetString("email")} {grant.Permissions}");

// 8. An operation of the app.
var promoted = await api.Promote.PostAsync(new PromoteBody { Department = department, EmployeeId = ids[0], JobTitle = "Manager" });
Console.WriteLine($"operation: {promoted?.JobTitle} before={promoted?.Before ?? "none"}");

// 9. Several actions in one request.
var batch = await api.Employees.Batch.PostAsync(new EmployeesBatchBody { Actions = ids.Skip(1).Select(id => new EmployeesAction { Delete = new EmployeesKey { Department = department, EmployeeId = id } }).ToList() });
Console.WriteLine($"batch: {string.Join(" ", batch!.Results!.Select(one => one.Status))}");

// 10. Delete under a condition, and a problem.
headers = Inspect();
await ann.GetAsync(request => request.Options.Add(headers));
var current = headers.ResponseHeaders["ETag"].Single();
await ann.DeleteAsync(request => request.Headers.Add("If-Match", current));
try
{
    await ann.GetAsync();
}
catch (Problem missing)
{
    Console.WriteLine($"delete: then {missing.ResponseStatusCode} {missing.Code}: {missing.Detail}");
}

class FixedToken(string token) : IAccessTokenProvider
{
    public AllowedHostsValidator AllowedHostsValidator { get; } = new();
    public Task<string> GetAuthorizationTokenAsync(Uri uri, Dictionary<string, object>? additional = null, CancellationToken cancellation = default) => Task.FromResult(token);
}
