/**
 * The connection string of an account of which only the tables are used. One that names no other service gets their addresses, without which the SDKs
 * open none.
 */
export function completeConnection(connectionString: string): string {
  const has = (name: string) => new RegExp(`(^|;)\\s*${name}=`, 'i').test(connectionString);
  const tables = /(?:^|;)\s*TableEndpoint=([^;]+)/i.exec(connectionString)?.[1]?.trim();
  if (tables === undefined || !URL.canParse(tables)) return connectionString;
  const at = (service: string) => tables.replace('.table.', `.${service}.`);
  const missing = Object.entries({
    ...(has('AccountKey') ? { DefaultEndpointsProtocol: new URL(tables).protocol.slice(0, -1) } : {}),
    QueueEndpoint: at('queue'),
    BlobEndpoint: at('blob'),
  }).filter(([name]) => !has(name));
  return [connectionString.replace(/;\s*$/, ''), ...missing.map((pair) => pair.join('='))].join(';');
}
