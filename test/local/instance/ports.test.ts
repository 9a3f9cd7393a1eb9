import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { choosePort, readPorts, writePorts } from '../../../local/instance/ports.ts';

const folder = await mkdtemp(join(inject('folder'), 'ports-'));

const ports = { api: 7071, identity: 7080, blob: 10000, queue: 10001, table: 10002 };

test('remembers the ports of a data folder', async () => {
  expect(await readPorts(folder)).toBeUndefined();
  await writePorts(folder, ports);
  expect(await readPorts(folder)).toEqual(ports);
});

test.each(['', '{}', JSON.stringify({ ...ports, api: 0 })])('rejects an invalid file of ports: %j', async (text) => {
  await writeFile(join(folder, 'ports.json'), text);
  await expect(readPorts(folder)).rejects.toThrow(/ports\.json is not valid: delete it/);
});

test('waits for a remembered port while the previous instance ends, and replaces a port that stays busy', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  expect(await choosePort(port, { isRemembered: false })).toBe(0);
  const waiting = choosePort(port, { isRemembered: true });
  setTimeout(() => server.close(), 300);
  expect(await waiting).toBe(port);
});
