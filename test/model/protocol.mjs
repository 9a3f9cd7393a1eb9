// Executable specification of docs/internals/consistency.md: visits every state of a tiny world (two entities, two writers, two queue functions,
// one crash anywhere) and checks that once all is quiet the index agrees with the entities, and that two entities never hold one unique value.
//   node protocol.mjs unique|plain lease|zombie|prompt [broken rule]
//
// lease   a message is held by one live process at a time
// zombie  a held message may become visible while its holder still runs: the holder was stalled
// prompt  as lease, and a message that the host of a dead process holds never comes back (ten minutes count as never):
//         only hidden messages, which come back after a minute, repair anything
//
// As designed, only plain zombie violates the rules: storage cannot reject an insert by a stalled process, so such an index
// entry needs one live holder for each message. Complete scripts take minutes (FUNCTIONS=1 SCRIPT=Q) or hours (two functions);
// protocol.test.ts visits the first states of each.
//
// Broken rules: norecheck, inlinenorecheck, early (plain), rowlast (unique), noreminder, releasefirst (prompt), straggler (plain), othernoetag,
// releaseany, releasemark (unique, SCRIPT=W), wanted (plain, SCRIPT=R), claimfirst, norecheck (unique, SCRIPT=Q), restfirst (SCRIPT=A),
// which the test finds; noetag, noclaimguard, lateguard, inlinenoetag (unique) need more states than that. late and resendwork (plain lease, SCRIPT=N, two
// functions) need half a million, which `npm run test:all` visits.
//
// MOVES=1 gives one row another version at any time, as the copy of a move to another account does. Broken rule: bury (plain, SCRIPT=U).
//
// LOST=1 loses one reply at any write: storage has executed the request, the sender does not know, and sends the request again. A
// request that storage would execute twice (an insert or a delete without an ETag) is sent once: its sender reads instead.
// Broken rule: resend (sent again in any case; SCRIPT=X, Y, Z).
import { copyOf as clone, exploreStates, printExplored } from './explore.ts';

const [kind, mode, broken = ''] = process.argv.slice(2);
// Entity 0 holds 'a' at the start, entity 1 does not exist, and entity 2 is one row without index entries. Two writers, one crash, two
// queue functions: small enough to visit every state.
const scripts = {
  P: [
    [0, 'b'],
    [1, 'a'],
  ],
  Q: [
    [0, 'b'],
    [0, 'a'],
  ],
  S: [
    [0, null],
    [1, 'a'],
  ],
  T: [
    [0, 'b'],
    [1, 'b'],
  ],
  U: [
    [0, null],
    [0, 'a'],
  ],
  // The second writer changes no index entry, so it sends no intent.
  V: [
    [0, 'b'],
    [0, 'same'],
  ],
  // Both claim one row, and the rejected one releases its claim.
  W: [
    [0, 'b'],
    [0, 'b'],
  ],
  // The first writer changes an entry of another index: its intent does not name 'a' or 'b'.
  R: [
    [0, 'side'],
    [0, 'b'],
  ],
  // An entity is created and deleted.
  X: [
    [1, 'c'],
    [1, null],
  ],
  // Writes without an ETag of an entity that is one row.
  Y: [
    [2, 'put'],
    [2, 'put'],
  ],
  Z: [
    [2, 'drop'],
    [2, 'put'],
  ],
  // Each value has an entry in a second index, which its writer leaves to the queue.
  A: [
    [0, 'b'],
    [0, 'a'],
  ],
  B: [
    [0, null],
    [0, 'a'],
  ],
};
const isLeft = (val) => val.startsWith('q');
const hasLeft = (name) => ['A', 'B'].includes(name);
const valueIn = (val) => val.at(-1);
/** True for an entry that only its entity writes. */
const isOwned = (val) => kind === 'plain' || isLeft(val);
// An entity was created and its work sent, and a writer deletes it. Both go through the queue.
scripts.N = [[1, null]];
function withWork(s) {
  s.ent[1] = { v: 1, email: 'c' };
  const work = { id: 'created', k: 1, touched: ['c'], rec: 0 };
  s.msg.push({ ...work, u: 4, vis: false, rec: 5 }, { ...work, u: 6, vis: true, ref: 4, refRec: 5 });
  if (broken === 'resendwork') s.msg.push({ ...work, u: 7, vis: true, ref: 4, refRec: 5 });
  return Object.assign(s, { n: 8, isQueued: true });
}
const only = process.env.SCRIPT;
const CRASHES = Number(process.env.CRASHES ?? 1),
  FUNCTIONS = Number(process.env.FUNCTIONS ?? 2),
  LOST = Number(process.env.LOST ?? 0),
  MOVES = Number(process.env.MOVES ?? 0),
  LIMIT = Number(process.env.LIMIT ?? 4e6);
const key = (s) => JSON.stringify(s);
const rk = (v, k) => (isOwned(v) ? v + k : v);
const init = (script, name) => ({
  ent: [
    { v: 1, email: 'a' },
    { v: 0, email: null },
    { v: 1, email: null },
  ],
  row: {
    [rk('a', 0)]: { ver: 2, owner: 0, ok: true, claim: null },
    ...(hasLeft(name) && { [rk('qa', 0)]: { ver: 2, owner: 0, ok: true } }),
  },
  hasLeft: hasLeft(name),
  n: 3,
  msg: [],
  w: script.map(([k, e]) => ({ pc: 'read', k, e })),
  r: Array.from({ length: FUNCTIONS }, () => ({ pc: 'idle' })),
  crashes: CRASHES,
  lost: LOST,
  moves: MOVES,
});
const over = (w) => ['done', 'dead'].includes(w.pc);
// A claim is live while its writer may still commit.
const live = (s, id) => s.w.some((w) => w.id === id && ['claim', 'egt', 'release'].includes(w.pc));
// Holders: a writer holds its intent until it has sent the work or has ended; a function holds the message of its
// host and the reminder.
const isHeld = (s, m) =>
  s.w.some((w) => (w.intent === m.u || (w.id === m.id && !m.ref && !m.received)) && !over(w)) ||
  s.r.some((r) => r.pc !== 'idle' && (r.host === m.u || r.hold === m.u));
const find = (t, u) => t.msg.find((m) => m.u === u);
const remove = (t, u) => {
  t.msg = t.msg.filter((m) => m.u !== u);
};

/** The entries that an intent names for a change between these values. */
const entriesOf = (s, values) =>
  [...new Set(values.filter(Boolean).flatMap((v) => (s.hasLeft ? [v, `q${v}`] : [v])))].sort();

// The steps of a reconciler, which settles the entries of `todo` concurrently; `at` returns its state, `write` adds a write, `finish`
// is its last step.
function reconcile(s, at, { add, write, finish, inline }) {
  const r = at(s);
  if (r.pc === 'start')
    add((t) => {
      const e = t.ent[r.k];
      Object.assign(at(t), {
        v: e.v,
        email: e.email,
        todo: [...new Set([...r.touched, broken === 'wanted' && e.email].filter(Boolean))].sort(),
        ops: {},
        pc: 'entries',
      });
      delete at(t).conflict;
      delete at(t).isOwnClaim;
    });
  if (r.pc === 'entries' && !r.todo.length)
    add((t) => {
      // Rows of a unique index are judged by reads of their own, except a claim to which another reconciler may have left the row.
      // Only a deleted entity has a tombstone.
      const isJudged = !r.touched.some(isOwned) && kind === 'unique' && r.email && !r.isOwnClaim;
      const isLast = isJudged || broken === 'norecheck' || (inline && broken === 'inlinenorecheck');
      at(t).pc = r.conflict ? 'start' : isLast ? 'release' : 'again';
    });
  if (r.pc === 'entries') for (const val of r.todo) settleEntry(s, at, { add, write, inline, val });
  if (r.pc === 'again')
    add((t) => {
      const e = t.ent[r.k];
      // A tombstone stays until the entries that are left to the queue agree.
      const isBuried = e.isDeleted && !(inline && s.hasLeft);
      at(t).pc = e.v !== r.v ? 'start' : isBuried ? 'bury' : 'release';
      if (isBuried) at(t).by = e.by;
    });
  // The tombstone is deleted under its ETag. If a move has given it another one, nobody else will delete it.
  if (r.pc === 'bury')
    write((t) => {
      const e = t.ent[r.k];
      const isMoved = e.v !== r.v && e.isDeleted && e.by === r.by && broken !== 'bury';
      if (isMoved) at(t).v = e.v;
      else at(t).pc = 'release';
      if (e.v === r.v) t.ent[r.k] = { v: 0, email: null };
    });
  if (r.pc === 'release') add(finish);
}

// The next step of one entry.
function settleEntry(s, at, { add, write, inline, val }) {
  const r = at(s);
  const op = r.ops[val] ?? { pc: 'row' };
  const done = (t) => {
    const x = at(t);
    x.todo = x.todo.filter((one) => one !== val);
    delete x.ops[val];
  };
  if (op.pc === 'row')
    add((t) => {
      const q = t.row[rk(val, r.k)];
      // A live claim of another intent: its own holder settles it; judged BEFORE the entity is read.
      const isLive = q?.claim && q.claim !== r.m && live(t, q.claim);
      if (isLive && !['noclaimguard', 'lateguard'].includes(broken)) return done(t);
      const pc = !isOwned(val) && broken !== 'rowlast' ? 'ent' : 'act';
      // An owned entry is judged by the entity as it was read first.
      at(t).ops[val] = { seen: q ? q.ver : 0, q: q ? { ...q } : null, email: r.email, pc };
    });
  // A claim looks live until its time is over, also if its writer has committed or died.
  const there = s.row[rk(val, r.k)];
  if (op.pc === 'row' && there?.claim && there.claim !== r.m && !live(s, there.claim)) add(done);
  if (op.pc === 'ent')
    add((t) => {
      Object.assign(at(t).ops[val], { email: t.ent[r.k].email, pc: 'act' });
    });
  if (op.pc === 'act')
    write((t) => {
      const id = rk(val, r.k),
        want = op.email === valueIn(val),
        q = op.q,
        now = t.row[id];
      const same = broken === 'noetag' || (inline && broken === 'inlinenoetag') || (now ? now.ver : 0) === op.seen;
      if (isOwned(val)) {
        if (want === !!q) return done(t);
        if (!same) at(t).conflict = true;
        else if (want) t.row[id] = { ver: ++t.n, owner: r.k, ok: true };
        else delete t.row[id];
        return done(t);
      }
      if (!q || q.owner !== r.k) return done(t);
      if (broken === 'lateguard' && q.claim && q.claim !== r.m && live(s, q.claim)) return done(t);
      if (want && q.ok && !q.claim) return done(t);
      if (!same) {
        delete at(t).ops[val];
        return;
      }
      if (want) t.row[id] = { ver: ++t.n, owner: r.k, ok: true, claim: null };
      else delete t.row[id];
      if (want && q.claim === r.m) at(t).isOwnClaim = true;
      done(t);
    });
}

// Adds a write, and the same write with a lost reply: storage changes, and `restore` returns the sender to its state before.
const writing = (s, add, restore) => (f) => {
  add(f);
  if (s.lost)
    add((t) => {
      f(t);
      restore(t);
      t.lost--;
    });
};

function next(s) {
  const out = [];
  const add = (f) => {
    const t = clone(s);
    f(t);
    out.push(t);
  };
  const die = (f) => {
    if (s.crashes)
      add((t) => {
        f(t);
        t.crashes--;
      });
  };
  s.w.forEach((w, i) => {
    const W = (t) => t.w[i];
    const end = (t, pc) => {
      t.w[i] = { pc, k: w.k, e: w.e, id: w.id, intent: w.intent, effects: W(t).effects };
    };
    const write = writing(s, add, (t) => {
      t.w[i] = { ...clone(w), effects: W(t).effects, unanswered: true };
    });
    // The work goes to a queue function: a visible message that names the receipt of the intent, which stays hidden as its reminder.
    const sendWork = (t, isSent = () => true) => {
      const m = find(t, w.intent);
      const touched = m?.touched.filter(isSent);
      if (m && broken === 'noreminder') m.vis = true;
      else if (m) t.msg.push({ u: ++t.n, id: w.id, k: w.k, touched, vis: true, rec: 0, ref: m.u, refRec: m.rec });
      end(t, 'done');
    };
    if (w.pc === 'read')
      add((t) => {
        const e = t.ent[w.k];
        Object.assign(W(t), { bv: e.v, be: e.email, id: `i${i}`, pc: broken === 'claimfirst' ? 'claim' : 'intent' });
        if (w.e === e.email) W(t).pc = 'done';
        if (w.e === 'same') W(t).pc = 'other';
        if (['put', 'drop'].includes(w.e)) W(t).pc = 'blind';
      });
    // A change of a field that is in no index entry: under the ETag, without an intent.
    if (w.pc === 'other')
      add((t) => {
        if (t.ent[w.k].v === w.bv || broken === 'othernoetag') t.ent[w.k] = { v: ++t.n, email: w.be };
        W(t).pc = 'done';
      });
    // A write of one row without a read and without an ETag. After a lost reply, success or an unknown outcome is the response.
    if (w.pc === 'blind') {
      if (w.unanswered && broken !== 'resend') add((t) => end(t, 'done'));
      else
        write((t) => {
          t.ent[w.k] = w.e === 'drop' ? { v: 0, email: null } : { v: ++t.n, email: null };
          W(t).effects = (W(t).effects ?? 0) + 1;
          W(t).pc = 'done';
        });
    }
    if (w.pc === 'intent')
      write((t) => {
        const u = ++t.n;
        t.msg.push({
          u,
          id: w.id,
          k: w.k,
          touched: w.e === 'side' ? [] : entriesOf(s, [w.be, w.e]),
          vis: broken === 'early',
          rec: ++t.n,
        });
        const isNext = kind === 'unique' && broken !== 'claimfirst';
        Object.assign(W(t), { intent: u, pc: isNext ? 'claim' : 'egt' });
      });
    if (w.pc === 'claim') {
      const then = broken === 'claimfirst' ? 'intent' : 'egt';
      if (!w.e || w.e === 'side')
        add((t) => {
          W(t).pc = then;
        });
      else {
        const q = s.row[w.e];
        const take = (t, row, isNew = false) => {
          t.row[w.e] = row;
          Object.assign(W(t), { pc: then, claimed: { ...row }, isNew });
        };
        if (!q) write((t) => take(t, { ver: ++t.n, owner: w.k, ok: false, claim: w.id }, true));
        else if (w.unanswered && q.claim === w.id) add((t) => take(t, q));
        else if (q.owner === w.k && !(q.claim && q.claim !== w.id && live(s, q.claim)))
          write((t) => take(t, { ...q, ver: ++t.n, claim: w.id }));
        else
          add((t) => {
            W(t).pc = 'drop';
          });
      }
    }
    if (w.pc === 'egt') {
      // The writer settles inline: its commit replaces the first read of the entity, and its claim replaces the
      // read of the row.
      const settle = (t, v) => {
        const touched = (find(t, w.intent)?.touched ?? entriesOf(s, [w.be, w.e])).filter((val) => !isLeft(val));
        const { email } = t.ent[w.k];
        const todo = [...new Set([...touched, broken === 'wanted' && email].filter(Boolean))].sort(
          (x, y) => (y === w.e) - (x === w.e),
        );
        const claimed = w.claimed && { [w.e]: { pc: 'act', q: w.claimed, seen: w.claimed.ver, email } };
        const ops = kind === 'unique' && claimed ? claimed : {};
        Object.assign(W(t), { pc: 'settle', in: { m: w.id, k: w.k, touched, v, email, todo, ops, pc: 'entries' } });
      };
      const isOwn = (t) => t.ent[w.k].v > 0 && t.ent[w.k].by === w.id;
      // An insert is sent once. Without a reply, its outcome is unknown unless the row is found: the intent then stays hidden.
      if (w.unanswered && w.bv === 0 && broken !== 'resend')
        add((t) => (isOwn(t) ? settle(t, t.ent[w.k].v) : end(t, 'dead')));
      else
        write((t) => {
          if (t.ent[w.k].v !== w.bv) {
            if (!w.unanswered || broken === 'selfconflict') W(t).pc = w.claimed ? 'release' : 'drop';
            else if (isOwn(t)) settle(t, t.ent[w.k].v);
            else end(t, 'dead');
            return;
          }
          const v = ++t.n;
          const email = w.e === 'side' ? w.be : w.e;
          t.ent[w.k] = { v, email, by: w.id, ...(email ? {} : { isDeleted: true }) };
          W(t).effects = (W(t).effects ?? 0) + 1;
          settle(t, v);
        });
    }
    if (w.pc === 'settle') {
      if (!s.isQueued)
        reconcile(s, (t) => t.w[i].in, {
          add,
          write,
          finish: (t) => {
            if (s.hasLeft && !w.sent) return sendWork(t, isLeft);
            if (!s.hasLeft) remove(t, w.intent);
            end(t, 'done');
          },
          inline: true,
        });
      // Too much work, or an error between two writes. Sent once: two copies would be two first deliveries. After a lost reply the
      // writer ends, as after a reply.
      add((t) => sendWork(t));
      // Broken: the work of the second index is sent before the entries of the first one agree.
      if (broken === 'restfirst' && !w.sent)
        add((t) => {
          sendWork(t, isLeft);
          t.w[i] = { ...clone(w), sent: true };
        });
      // Broken: another entity of the same intent is still being written when the work is sent.
      if (broken === 'straggler' && !w.sent)
        add((t) => {
          sendWork(t);
          t.w[i] = { ...clone(w), sent: true };
        });
    }
    // A rejected writer deletes the row that it inserted. It leaves a row that existed, or has changed, to a queue function.
    if (w.pc === 'release')
      write((t) => {
        const q = t.row[w.e];
        const isOwn = q?.ver === w.claimed.ver;
        if (isOwn && w.isNew) delete t.row[w.e];
        else if (isOwn && broken === 'releasemark') t.row[w.e] = { ...q, ver: ++t.n, claim: null };
        else if (isOwn && broken === 'releaseany') delete t.row[w.e];
        W(t).pc = isOwn && (w.isNew || broken === 'releasemark' || broken === 'releaseany') ? 'drop' : 'send';
      });
    if (w.pc === 'drop')
      add((t) => {
        remove(t, w.intent);
        end(t, 'done');
      });
    if (w.pc === 'send') add((t) => sendWork(t));
    if (!over(w) && w.pc !== 'read') die((t) => end(t, 'dead'));
  });
  const move = (rowOf, name) =>
    add((t) => {
      rowOf(t)[name] = ++t.n;
      t.moves--;
    });
  if (s.moves) {
    for (const k of [0, 1]) if (s.ent[k].v) move((t) => t.ent[k], 'v');
    for (const id of Object.keys(s.row)) move((t) => t.row[id], 'ver');
  }
  s.msg.forEach((m, j) => {
    if (
      !m.vis &&
      !(mode === 'prompt' && m.received) &&
      ((mode === 'zombie' && !s.w.some((w) => w.intent === m.u && !over(w))) || !isHeld(s, m))
    )
      add((t) => {
        t.msg[j].vis = true;
        for (const work of t.msg) if (work.ref === m.u) work.isLate = true;
      });
  });
  s.r.forEach((r, i) => {
    const R = (t) => t.r[i];
    const write = writing(s, add, (t) => {
      t.r[i] = clone(r);
    });
    if (r.pc === 'idle')
      s.msg.forEach((m) => {
        if (m.vis)
          add((t) => {
            const isAgain = m.received && { isAgain: true };
            Object.assign(find(t, m.u), { vis: false, rec: ++t.n, received: true, ...isAgain });
            t.r[i] = { pc: 'take', host: m.u, m: m.id, k: m.k, touched: m.touched };
          });
      });
    if (r.pc === 'take')
      write((t) => {
        const host = find(t, r.host);
        if (!host) {
          t.r[i] = { pc: 'idle' };
          return;
        }
        if (broken === 'noreminder') {
          Object.assign(R(t), { pc: 'start' });
          return;
        }
        if (host.ref) {
          const kept = find(t, host.ref);
          // Another function holds the message, or the work is done.
          if (!kept || kept.rec !== host.refRec) {
            remove(t, r.host);
            t.r[i] = { pc: 'idle' };
            return;
          }
          Object.assign(kept, { rec: ++t.n, vis: false });
          Object.assign(R(t), { hold: kept.u, pc: 'start' });
          return;
        }
        const u = ++t.n;
        t.msg.push({ u, id: r.m, k: r.k, touched: r.touched, vis: false, rec: ++t.n });
        Object.assign(R(t), { hold: u, pc: 'start' });
      });
    // The first delivery of work whose reminder is still hidden by its sender: there is no other holder, so the function may hold the
    // reminder as it is.
    const host = r.pc === 'take' && find(s, r.host);
    if (host?.ref && !host.isAgain && (!host.isLate || broken === 'late'))
      add((t) => {
        Object.assign(R(t), { hold: host.ref, pc: 'start' });
      });
    reconcile(s, R, {
      add,
      write,
      finish: (t) => {
        if (r.hold) remove(t, r.hold);
        R(t).pc = 'ack';
      },
      inline: false,
    });
    if (r.pc === 'start' && broken === 'releasefirst' && r.hold)
      add((t) => {
        remove(t, r.hold);
        delete R(t).hold;
      });
    if (r.pc === 'ack')
      add((t) => {
        remove(t, r.host);
        t.r[i] = { pc: 'idle' };
      });
    // Not covered by prompt: a process that dies between the receipt of a reminder and the copy that it sends first.
    if (r.pc !== 'idle' && !(mode === 'prompt' && r.pc === 'take' && !find(s, r.host)?.ref))
      die((t) => {
        t.r[i] = { pc: 'idle' };
      });
  });
  return out;
}
const [ENTITY_NUMBERS, VERSION, OP_NUMBERS] = [['v'], ['ver'], ['seen']];
const [WRITER_NUMBERS, FUNCTION_NUMBERS] = [
  ['bv', 'intent'],
  ['v', 'host', 'hold'],
];
const MESSAGE_NUMBERS = ['u', 'rec', 'ref', 'refRec'];
/** Calls `visit` with each object that has numbers and the names of those numbers. */
const visitNumbers = (t, visit) => {
  const visitOps = (r) => {
    for (const op of Object.values(r?.ops ?? {})) {
      visit(op, OP_NUMBERS);
      if (op.q) visit(op.q, VERSION);
    }
  };
  for (const e of t.ent) visit(e, ENTITY_NUMBERS);
  for (const id in t.row) visit(t.row[id], VERSION);
  for (const m of t.msg) visit(m, MESSAGE_NUMBERS);
  for (const w of t.w) {
    visit(w, WRITER_NUMBERS);
    if (w.claimed) visit(w.claimed, VERSION);
    if (w.in) visit(w.in, ENTITY_NUMBERS);
    visitOps(w.in);
  }
  for (const r of t.r) {
    visit(r, FUNCTION_NUMBERS);
    visitOps(r);
  }
};
// States that differ only in their numbers are equal, so numbers are replaced by their ranks.
const norm = (t) => {
  for (const w of t.w)
    if (over(w)) {
      delete w.intent;
    }
  const values = new Set();
  visitNumbers(t, (o, names) => {
    for (const n of names) if (o[n]) values.add(o[n]);
  });
  const rank = new Map([...values].sort((x, y) => x - y).map((v, i) => [v, i + 1]));
  visitNumbers(t, (o, names) => {
    for (const n of names) if (o[n]) o[n] = rank.get(o[n]);
  });
  t.n = rank.size + 1;
  t.msg.sort((x, y) => x.u - y.u);
  t.row = Object.fromEntries(Object.entries(t.row).sort());
  if (t.r.length > 1) t.r.sort((x, y) => (key(x) < key(y) ? -1 : 1));
  return t;
};
const isStuck = (m) => mode === 'prompt' && m.received;
const isQuiet = (s) => s.msg.every(isStuck) && s.w.every(over) && s.r.every((r) => r.pc === 'idle');

function violationOf(s) {
  if (s.w.some(({ effects }) => effects > 1)) return 'a change took effect twice';
  if (s.w.some(({ pc, effects }) => effects && ['release', 'drop'].includes(pc)))
    return 'a change that was rejected took effect';
  if (kind === 'unique' && s.ent[0].email && s.ent[0].email === s.ent[1].email) return 'two entities hold one value';
  if (!isQuiet(s)) return undefined;
  for (const i of [0, 1]) {
    const e = s.ent[i];
    if (e.isDeleted && !s.msg.length) return `the tombstone of entity ${i} left behind`;
    for (const val of entriesOf(s, [e.email])) {
      const r = s.row[rk(val, i)];
      if (!(r?.owner === i && r.ok)) return `entity ${i} holds ${e.email}, the index does not say so`;
    }
  }
  for (const id in s.row) {
    const r = s.row[id];
    if (s.ent[r.owner].email !== id.replace(/^q/, '')[0]) return `index row ${id} left behind`;
    if (r.claim) return `a claim left on ${id}`;
  }
  return undefined;
}

const names = Object.keys(scripts).filter((name) => (only ? only === name : name !== 'N' || kind === 'plain'));
printExplored(names, (name) =>
  exploreStates({
    first: norm(name === 'N' ? withWork(init(scripts.N, name)) : init(scripts[name], name)),
    nextStates: (s) => next(s).map((t) => [process.env.SHOW ? key(t) : '', norm(t), violationOf(t)]),
    // Nothing ends the messages of a world without functions.
    isOver: (s) => (FUNCTIONS > 0 ? isQuiet(s) : s.w.every(over)),
    isDepthFirst: true,
    limit: LIMIT,
  }),
);
