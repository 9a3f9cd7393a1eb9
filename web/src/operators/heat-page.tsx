import { useState } from 'preact/hooks';
import { useApp } from '../app/context.ts';
import { formatCount, joinNames, plural } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { read } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';

interface Partition {
  readonly service: 'table' | 'queue';
  readonly resource: string;
  readonly account?: string;
  readonly slot: string;
  readonly partition?: string;
  readonly kind: keyof typeof KINDS;
  readonly entities: readonly string[];
  readonly index?: string;
  readonly load: number;
  readonly requests: number;
  readonly written: number;
  readonly throttled: number;
  readonly share: number;
  readonly isHot: boolean;
  readonly advice: readonly string[];
}

interface Heat {
  readonly load: number;
  readonly items: readonly Partition[];
}

const KINDS = {
  entity: 'rows of',
  index: 'index',
  list: 'list',
  totals: 'totals',
  expiry: 'expiry of',
  queue: 'messages',
  engine: "the engine's own rows",
};

/** The busiest partitions of the last minutes, and what to do about them. An alert names a table and a slot, which are found here. */
export function HeatPage() {
  const { api } = useApp();
  const loaded = useLoaded((signal) => read<Heat>(api, 'heat', signal), 'heat');
  const [wanted, setWanted] = useState('');
  return (
    <>
      <PageHead title="Hot partitions" loaded={loaded} />
      <Content loaded={loaded} what="the partitions">
        {({ load, items }) => {
          const found = items.filter((one) => isFound(one, wanted.trim().toLowerCase()));
          // An alert names the slot of a hot one.
          const isShown = (one: Partition) => one.isHot || wanted.trim() !== '' || isReadable(one);
          const shown = found.filter(isShown);
          const hidden = found.filter((one) => !isShown(one));
          return (
            <>
              <dl class="figures">
                <div>
                  <dt>Load a minute</dt>
                  <dd>{formatRate(load)}</dd>
                </div>
                <div>
                  <dt>Hot partitions</dt>
                  <dd>{formatCount(items.filter(({ isHot }) => isHot).length)}</dd>
                </div>
              </dl>
              <p class="muted">
                Of the last minutes, counted by the process of the app that responded. Load is the number of reads and
                of changed entities. A partition handles about 120,000 a minute.
              </p>
              <div class="filters">
                <label>
                  Table or slot
                  <input type="search" value={wanted} onInput={({ currentTarget }) => setWanted(currentTarget.value)} />
                </label>
              </div>
              {shown.length > 0 && <PartitionTable partitions={shown} />}
              {hidden.length > 0 && (
                <p class="muted">
                  {plural(hidden.length, 'partition')} of entities that your roles may not read, with{' '}
                  {formatRate(hidden.reduce((sum, one) => sum + one.load, 0))} of the load, are left out. The search
                  finds them by their table or slot.
                </p>
              )}
              {found.length === 0 && <p>No busy partition{wanted ? ' matches' : ''}.</p>}
            </>
          );
        }}
      </Content>
    </>
  );
}

function PartitionTable({ partitions }: { readonly partitions: readonly Partition[] }) {
  return (
    <Table
      label="Partitions, the busiest first"
      items={partitions}
      keyOf={({ account, resource, slot, partition }) => `${account} ${resource} ${slot} ${partition}`}
      isNew={({ isHot }) => isHot}
      columns={[
        {
          title: 'Partition',
          isHeader: true,
          cell: (one) => (
            <>
              {nameOf(one)}
              {!isReadable(one) && <small> your roles may not see the key</small>}
              <details class="advice" open={one.isHot}>
                <summary>What to do if it is too hot</summary>
                <ul>
                  {one.advice.map((sentence) => (
                    <li key={sentence}>{sentence}</li>
                  ))}
                </ul>
              </details>
            </>
          ),
        },
        { title: 'Load', isNumber: true, cell: ({ load }) => formatRate(load) },
        { title: 'Requests', isNumber: true, cell: ({ requests }) => formatRate(requests) },
        { title: 'Entities written', isNumber: true, cell: ({ written }) => formatRate(written) },
        {
          title: 'Rejected as busy',
          isNumber: true,
          cell: ({ throttled }) => <span class={throttled > 0 ? 'found' : undefined}>{formatRate(throttled)}</span>,
        },
        {
          title: 'Share',
          isNumber: true,
          cell: (one) => (
            <>
              {Math.round(one.share * 100)} % <meter value={one.share} max={1} aria-label={`Share of ${nameOf(one)}`} />
            </>
          ),
        },
        { title: 'What', cell: placeOf },
        {
          title: 'Where',
          cell: ({ service, resource, slot, account }) => (
            <>
              {service} <code>{resource}</code>
              {service === 'table' && (
                <>
                  {' '}
                  slot <code>{slot}</code>
                </>
              )}
              {account !== undefined && ` in ${account}`}
            </>
          ),
        },
      ]}
    />
  );
}

/** The key, if the roles of the user may read it. */
function nameOf({ partition, resource, slot, service }: Partition): string {
  if (partition !== undefined && partition !== '') return partition;
  return service === 'table' ? `slot ${slot} of ${resource}` : resource;
}

/** The keys of the engine's own rows and of queues tell nothing of entities. */
function isReadable({ service, partition, entities }: Partition): boolean {
  return service === 'queue' || partition !== undefined || entities.length === 0;
}

function placeOf({ kind, entities, index }: Partition): string {
  const names = joinNames(entities, 'and');
  return [KINDS[kind], index !== undefined && kind !== 'expiry' ? `${index} of ${names}` : names]
    .filter(Boolean)
    .join(' ');
}

function isFound({ resource, slot, partition = '' }: Partition, wanted: string): boolean {
  return [resource, slot, partition.toLowerCase()].some((text) => text.includes(wanted));
}

function formatRate(rate: number): string {
  return rate > 0 && rate < 1 ? '< 1' : formatCount(Math.round(rate));
}
