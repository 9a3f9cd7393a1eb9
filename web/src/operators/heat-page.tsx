import { useState } from 'preact/hooks';
import { useApp } from '../app/context.ts';
import { formatCount, joinNames } from '../ui/format.ts';
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
              <ol class="messages" aria-label="Partitions, the busiest first">
                {found.map((one) => (
                  <PartitionCard key={`${one.account} ${one.resource} ${one.slot} ${one.partition}`} {...one} />
                ))}
              </ol>
              {found.length === 0 && <p>No busy partition{wanted ? ' matches' : ''}.</p>}
            </>
          );
        }}
      </Content>
    </>
  );
}

function PartitionCard(props: Partition) {
  const { service, resource, account, slot, partition, isHot, load, requests, written, throttled, share, advice } =
    props;
  return (
    <li class={isHot ? 'card alarming' : 'card'}>
      <h2>{partition === undefined || partition === '' ? resource : partition}</h2>
      <p class="muted">
        {placeOf(props)} · {service} <code>{resource}</code>
        {service === 'table' && (
          <>
            {' '}
            · slot <code>{slot}</code>
          </>
        )}
        {account !== undefined && ` · account ${account}`}
        {service === 'table' && partition === undefined && ' · your roles may not see the key'}
      </p>
      <dl class="figures">
        <Figure title="Load" value={formatRate(load)} />
        <Figure title="Requests" value={formatRate(requests)} />
        <Figure title="Entities written" value={formatRate(written)} />
        <Figure title="Rejected as busy" value={formatRate(throttled)} isBad={throttled > 0} />
        <div>
          <dt>Share {Math.round(share * 100)} %</dt>
          <dd>
            <meter value={share} max={1} aria-label={`Share of ${partition ?? `${resource}, slot ${slot}`}`} />
          </dd>
        </div>
      </dl>
      <details open={isHot}>
        <summary>What to do if it is too hot</summary>
        <ul>
          {advice.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      </details>
    </li>
  );
}

function Figure({ title, value, isBad }: { readonly title: string; readonly value: string; readonly isBad?: boolean }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd class={isBad ? 'found' : undefined}>{value}</dd>
    </div>
  );
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
