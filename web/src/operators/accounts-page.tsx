import { useApp } from '../app/context.ts';
import { formatAge, formatCount, formatInstant, joinNames, plural } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { read } from './operations.ts';
import { Advice, Content, Figure, PageHead } from './page-head.tsx';

interface Account {
  readonly name: string;
  readonly isAway: boolean;
  readonly slots?: number;
  readonly layers: readonly { readonly name: string; readonly slots: number }[];
  readonly containers: readonly string[];
}

interface Move {
  readonly move: string;
  readonly from: string;
  readonly to: string;
  readonly slots: number;
  readonly gone: number;
  readonly phase: 'fencing' | 'copying' | 'handing over' | 'gone';
  readonly goneAt?: string;
}

interface Mover {
  readonly isAlive: boolean;
  readonly startedAt: string;
  readonly saidAt: string;
  readonly phase: keyof typeof WORK;
  readonly secondsLeft?: number;
  readonly table?: string;
  readonly pass?: number;
  readonly rows: number;
  readonly rowsPerSecond: number;
  readonly written: number;
  readonly blobs: number;
  readonly slots: number;
  readonly pauseMilliseconds: number;
}

interface Accounts {
  readonly items: readonly Account[];
  readonly moves: readonly Move[];
  readonly mover?: Mover;
  readonly unowned: readonly string[];
  readonly advice: readonly string[];
}

const SLOTS = 4_096;
const WORK = {
  waiting: 'Waits for late requests before it copies',
  copying: 'Compares rows and copies differences',
  'handing over': 'Hands slots over; their writes wait briefly',
};

/** What each storage account owns, and how far the moves between accounts are. */
export function AccountsPage() {
  const { api } = useApp();
  const loaded = useLoaded((signal) => read<Accounts>(api, 'accounts', signal), 'accounts');
  return (
    <>
      <PageHead title="Storage accounts" loaded={loaded} />
      <Content loaded={loaded} what="the accounts">
        {({ items, moves, mover, unowned, advice }) => {
          const underWay = moves.filter(({ phase }) => phase !== 'gone');
          const moved = moves.filter(({ phase }) => phase === 'gone');
          const isDead = !mover?.isAlive && (underWay.length > 0 || unowned.length > 0);
          return (
            <>
              {isDead && (
                <Notice kind="bad">
                  <strong>A move has stopped{mover && ` ${formatAge(mover.saidAt)} ago`}</strong>
                  {unowned.length > 0 && (
                    <p>
                      {plural(unowned.length, 'slot')} without an owner: {nameSome(unowned)}.
                    </p>
                  )}
                  <Advice advice={advice} />
                </Notice>
              )}
              <Table
                label="Storage accounts"
                items={items}
                keyOf={({ name }) => name}
                columns={[
                  { title: 'Account', isHeader: true, cell: ({ name }) => name },
                  {
                    title: 'Slots',
                    isNumber: true,
                    cell: ({ slots }) =>
                      slots === undefined ? <span class="found">does not respond</span> : formatCount(slots),
                  },
                  {
                    title: 'Share',
                    cell: ({ name, slots }) =>
                      slots !== undefined && <meter value={slots} max={SLOTS} aria-label={`Share of ${name}`} />,
                  },
                  { title: 'Placed here', cell: sayPlaced },
                ]}
              />
              {items.length === 1 && <p class="muted">The app has one account, which has all data.</p>}
              {(underWay.length > 0 || mover?.isAlive) && (
                <h2 class="apart">{isDead ? 'Not finished' : 'Under way'}</h2>
              )}
              {mover && (mover.isAlive || isDead) && <Work {...mover} />}
              <ul class="messages">
                {underWay.map((move) => (
                  <MoveCard key={move.move} {...move} />
                ))}
              </ul>
              {moved.length > 0 && (
                <>
                  <h2 class="apart">Moved, and not cleaned up</h2>
                  <Table
                    label="Moved slots"
                    items={moved}
                    keyOf={({ move }) => move}
                    columns={[
                      { title: 'Slots', isNumber: true, cell: ({ slots }) => formatCount(slots) },
                      { title: 'From', cell: ({ from }) => from },
                      { title: 'To', cell: ({ to }) => to },
                      { title: 'Since', cell: ({ goneAt }) => goneAt && formatAge(goneAt) },
                      { title: 'Move', cell: ({ move }) => <code>{move}</code> },
                    ]}
                  />
                  {!isDead && <Advice advice={advice} />}
                </>
              )}
            </>
          );
        }}
      </Content>
    </>
  );
}

/** What the command wrote last of its work. */
function Work({ isAlive, phase, saidAt, secondsLeft, table, pass, ...counts }: Mover) {
  const { rows, rowsPerSecond, written, blobs, slots, pauseMilliseconds } = counts;
  return (
    <>
      <p role="status">
        {isAlive ? WORK[phase] : 'What the command reported last, up to some seconds before it stopped'}
        {table !== undefined && (
          <>
            : <code>{table}</code>
            {pass !== undefined && pass > 1 && `, comparison ${pass}`}
          </>
        )}
        {isAlive && secondsLeft !== undefined && `, about ${plural(secondsLeft, 'second')} left`}.{' '}
        <span class="muted">{isAlive ? `${formatAge(saidAt)} ago` : formatInstant(saidAt)}</span>
      </p>
      <dl class="figures">
        <Figure title="Rows compared" value={formatCount(rows)} />
        {isAlive && rowsPerSecond > 0 && <Figure title="Rows a second" value={formatCount(rowsPerSecond)} />}
        <Figure title="Rows written" value={formatCount(written)} />
        <Figure title="Blobs copied" value={formatCount(blobs)} />
        <Figure title="Slots handed over" value={formatCount(slots)} />
        <Figure title="Longest pause of writes" value={`${formatCount(pauseMilliseconds)} ms`} />
      </dl>
    </>
  );
}

function MoveCard({ move, from, to, slots, gone, phase }: Move) {
  return (
    <li class="card">
      <h3>
        {from} to {to}
      </h3>
      <p class="muted">
        <code>{move}</code> · {phase} · {formatCount(gone)} of {plural(slots, 'slot')} handed over
      </p>
      <progress value={gone} max={slots} aria-label={`Slots handed over from ${from} to ${to}`} />
    </li>
  );
}

function sayPlaced({ layers, containers }: Account): string {
  const own = layers.map(({ name, slots }) => (slots === SLOTS ? name : `${plural(slots, 'slot')} of ${name}`));
  return joinNames([...own, ...containers.map((container) => `container ${container}`)], 'and');
}

function nameSome(slots: readonly string[]): string {
  return slots.length > 8 ? `${slots.slice(0, 8).join(', ')}, …` : joinNames(slots, 'and');
}
