import type { Event } from './event.ts';
import type { Planned } from './plan.ts';
import type { Trap } from './world/network.ts';

/** An event as a line that a person can read. */
export function formatEvent({ nth, at, event }: Planned): string {
  const time = `${String(nth).padStart(4)}. ${(at / 1_000).toFixed(3)} s`;
  switch (event.do) {
    case 'write': {
      const { of, do: write, ...rest } = event.step;
      return `${time} client ${event.client}: ${of} ${write} ${Object.values(rest)
        .map((part) => JSON.stringify(part))
        .join(' ')}${formatStops(event)}`;
    }
    case 'read':
      return `${time} client ${event.client}: ${event.of} read ${JSON.stringify(event.key)}${formatStops(event)}`;
    case 'grant':
      return `${time} client ${event.client}: grant of ${event.of}${formatStops(event)}`;
    case 'list':
      return `${time} client ${event.client}: ${event.of} list ${JSON.stringify(event.key)}`;
    case 'transact':
      return `${time} client ${event.client}: transaction ${JSON.stringify(event.actions)}`;
    case 'continue':
      return `${time} client ${event.clients[1]}: ${event.of} list ${JSON.stringify(event.key)}, from the second page of client ${event.clients[0]}`;
    case 'kill':
      return `${time} process ${event.process} is killed`;
    case 'pause':
      return `${time} process ${event.process} pauses for ${Math.round(event.forMs)} ms`;
    case 'away':
      return `${time} account ${event.account + 1} does not respond for ${event.forMs} ms`;
    case 'import': {
      const stands =
        event.standsAfterMs === undefined
          ? ''
          : `, and stands still after ${Math.round(event.standsAfterMs)} ms for ${event.standsForMs} ms`;
      return `${time} ${event.rows.length} rows of ${event.of} are loaded${formatDeaths(event)}${stands}`;
    }
    case 'grow':
      return `${time} the processes get another account`;
    case 'deploy':
      return `${time} the next release is deployed, each process ${Math.round(event.apartMs)} ms after the one before`;
    case 'operate': {
      const dies = event.diesAfterMs === undefined ? '' : `, and dies after ${Math.round(event.diesAfterMs)} ms`;
      return `${time} an operator works on accounts: ${event.work}, to account ${event.to + 1}${dies}`;
    }
    case 'snapshot':
      return `${time} a snapshot begins, in parts of ${event.forMs} ms${formatDeaths(event)}`;
    case 'carry':
      return `${time} waiting lines are carried to the backup${formatDeaths(event)}`;
    case 'verify':
      return `${time} an operator repairs ${event.of}${formatStops(event)}`;
    case 'upkeep':
      return `${time} an operator asks for ${event.work} of ${event.of} ${event.index ?? ''}${formatStops(event)}`;
    case 'rotate':
      return `${time} the key-encryption key is rotated`;
    case 'spoil':
      return `${time} each process that gets the next message of an index dies`;
    case 'replay':
      return `${time} an operator replays failed messages`;
  }
}

const formatDeaths = ({ diesAt }: { readonly diesAt: readonly number[] }) =>
  diesAt.length > 0 ? `, whose processes die at the requests ${diesAt.join(', ')}` : '';

function formatStops({ after, traps = [] }: Pick<Event & { do: 'write' }, 'after' | 'traps'>): string {
  const stops = [
    ...(after ? [`${Math.round(after.ms)} ms after trap ${after.scene}`] : []),
    ...traps.map((trap) => `trap ${trap.scene} at ${formatTrap(trap)}`),
  ];
  return stops.length > 0 ? ` (${stops.join(', ')})` : '';
}

function formatTrap({ request, nth, end, forMs, then }: Trap): string {
  return `${request} ${nth}: ${end} ${Math.round(forMs)} ms${then ? `, then at ${formatTrap(then)}` : ''}`;
}
