// Time in the protocol of docs/internals/consistency.md: visits every state of two writers and a queue function that measure their holds in
// ticks, and of requests that storage executes late. protocol.mjs has the protocol without time, in more detail.
//   node time.mjs plain|unique [broken rules]
//
// A tick passes at any moment unless a request has to be executed first. A process waits between any two steps for as long as it
// likes. A request is executed within TICKS.lands ticks of the look at the clock that allowed it, or never: that is the pause of
// the process, the way to storage and the work of storage together, and the difference of clocks over a hold. The sender
// may not learn whether it was executed, and may die.
//
// The limits are those of lib/engine/engine.ts in the smallest numbers that keep its rules:
//   settle + lands <= hide, commit + lands <= claim, commit + lands <= hide, lands < postpone
//
// Broken rules, which all find a violation: nocommitlimit, sendunknown, resend; plain: nosettlelimit, norenew, soon, countafter,
// notimepassed; unique: noclaimlimit, ownclock.
// Broken assumptions, requests that land at any time: stallcommit (violates both), stallinsert (violates plain), stalletag (violates
// none: changes of entries under an ETag; with norewrite, which leaves a right entry as it is, it violates plain, SCRIPT=U).
// longclaim lets a claim outlive its intent, and violates nothing.
import { copyOf as clone, exploreStates, printExplored } from './explore.ts';

const [kind, ...broken] = process.argv.slice(2);
const isBroken = (rule) => broken.includes(rule);
const TICKS = { commit: 1, settle: 2, renew: 1, lands: 1, claim: isBroken('longclaim') ? 9 : 2, hide: 3, postpone: 2 };
/** For requests that land at any time. */
const FOREVER = 99;
const only = process.env.SCRIPT;
const [CRASHES, FUNCTIONS, LOST] = [
  Number(process.env.CRASHES ?? 1),
  Number(process.env.FUNCTIONS ?? 1),
  Number(process.env.LOST ?? 1),
];
const LIMIT = Number(process.env.LIMIT ?? 4e6);
// Two entities without the value 'b', which is indexed. In U, entity 0 has it at the start.
const scripts = {
  Q: [
    [0, 'b'],
    [0, null],
  ],
  T: [
    [0, 'b'],
    [1, 'b'],
  ],
  W: [
    [0, 'b'],
    [0, 'b'],
  ],
  U: [
    [0, null],
    [0, 'b'],
  ],
};
const isPlain = kind === 'plain';
const rk = (val, k) => (isPlain ? val + k : val);
const init = (name, script) => ({
  ent: [
    { v: 1, val: name === 'U' ? 'b' : null },
    { v: 2, val: null },
  ],
  row: name === 'U' ? { [rk('b', 0)]: { ver: 3, owner: 0, ok: true } } : {},
  n: 4,
  msg: [],
  w: script.map(([k, e]) => ({ pc: 'read', k, e })),
  r: Array.from({ length: FUNCTIONS }, () => ({ pc: 'idle' })),
  net: [],
  crashes: CRASHES,
  lost: LOST,
});
const over = (w) => w.pc === 'done';
const isActive = (p) => !over(p) && p.pc !== 'idle' && p.pc !== 'read';
const find = (t, u) => t.msg.find((m) => m.u === u);
const remove = (t, u) => {
  t.msg = t.msg.filter((m) => m.u !== u);
};
/** Hides a message for a hold, unless another process has received it. */
const hide = (t, u, rec, ticks = TICKS.hide) => {
  const m = find(t, u);
  if (m?.rec !== rec) return undefined;
  return Object.assign(m, { in: ticks, rec: ++t.n });
};
const push = (t, m) => {
  t.msg.push({ u: ++t.n, rec: ++t.n, ...m });
  return t.msg.at(-1);
};
/** A claim is judged by the clock of storage; broken: by a clock that is ahead. */
const isLive = (q) => q.expires > (isBroken('ownclock') ? 1 : 0);

/** Executes a request. False if its condition does not hold. */
function execute(t, op) {
  const q = t.row[op.key];
  if (op.do === 'commit') {
    if (t.ent[op.k].v !== op.seen) return false;
    t.ent[op.k] = { v: ++t.n, val: op.val };
    return true;
  }
  if ((q ? q.ver : 0) !== op.seen) return false;
  if (op.do === 'delete') delete t.row[op.key];
  else t.row[op.key] = { ...op.row, ver: ++t.n, ...(op.expires === undefined ? {} : { expires: op.expires }) };
  return true;
}

function tick(s) {
  if ([...s.w, ...s.r].some((p) => p.op?.left === 0)) return undefined;
  const t = clone(s);
  const older = (o, most) => {
    if (o.age !== undefined) o.age = Math.min(most, o.age + 1);
  };
  const less = (o, name) => {
    if (o[name] !== undefined && o[name] !== FOREVER) o[name] = Math.max(0, o[name] - 1);
  };
  t.net = t.net.filter(({ left }) => left > 0);
  for (const m of t.msg) {
    less(m, 'in');
    older(m, TICKS.renew);
  }
  for (const p of [...t.w, ...t.r]) older(p, TICKS.settle);
  for (const op of [...t.net, ...[...t.w, ...t.r].flatMap(({ op }) => op ?? [])]) {
    less(op, 'left');
    less(op, 'expires');
  }
  for (const q of Object.values(t.row)) less(q, 'expires');
  return t;
}

function next(s) {
  const out = [];
  const add = (f) => {
    const t = clone(s);
    f(t);
    out.push(t);
  };
  // The work goes to a queue function: a visible message that names the receipt of the intent, which stays hidden as its reminder.
  const sendWork = (t, w) => {
    const m = find(t, w.intent);
    const rest = m ?? { id: w.id, k: w.k, touched: w.touched };
    push(t, { id: rest.id, k: rest.k, touched: rest.touched, in: 0, ref: w.intent, refRec: w.rec, age: w.age });
    end(t, w);
  };
  const end = (t, w) => {
    const i = t.w.findIndex(({ id, pc }) => id === w.id && pc !== 'read');
    t.w[i] = { pc: 'done', k: w.k, e: w.e };
  };
  const idle = (t, i) => {
    t.r[i] = { pc: 'idle' };
  };

  /** The steps of a process with a request on its way: `reply` continues with the outcome, `unanswered` without. */
  const inFlight = (at, { reply, unanswered, die }) => {
    add((t) => {
      const { op } = at(t);
      delete at(t).op;
      reply(t, execute(t, op), op);
    });
    const detach = (t) => {
      const { op } = at(t);
      t.net.push({ ...op, left: op.left === FOREVER ? FOREVER : Math.min(op.left, TICKS.lands) });
      delete at(t).op;
    };
    if (s.lost)
      add((t) => {
        const { op } = at(t);
        detach(t);
        t.lost--;
        unanswered(t, op);
      });
    if (s.crashes)
      add((t) => {
        detach(t);
        t.crashes--;
        die(t);
      });
  };
  const isLate = (op) =>
    (isBroken('stallcommit') && op.do === 'commit') ||
    (isBroken('stallinsert') && op.isSettling && op.seen === 0) ||
    (isBroken('stalletag') && op.isSettling && op.seen > 0);
  /** Sends a request, or again and again until the limit of the process. */
  const call = (p, op, limit) => {
    p.op = { ...op, left: isLate(op) ? FOREVER : Math.max(0, limit - 1 - p.age) + TICKS.lands };
  };

  /** The steps of a reconciler. `check` runs `then` if the process may still write, `fail` ends work with an unknown outcome. */
  const reconcile = (at, { check, fail, finish, die }) => {
    const p = at(s);
    if (p.op) {
      const reply = (t, isDone, op) => {
        const r = at(t);
        delete r.cur;
        if (isDone || isPlain) r.todo = r.todo.filter((val) => val !== op.entry);
        if (!isDone && isPlain) r.conflict = true;
      };
      const unanswered = (t, op) => {
        delete at(t).cur;
        // An insert is sent once. Broken: it is sent again, and lands twice. A change under an ETag is sent again, and lands once.
        if (op.seen === 0 && !isBroken('resend')) fail(t);
      };
      inFlight(at, { reply, unanswered, die });
      return;
    }
    if (p.pc === 'start')
      add((t) => {
        const r = at(t);
        const e = t.ent[r.k];
        Object.assign(r, { v: e.v, val: e.val, todo: r.touched, pc: 'entries' });
        delete r.conflict;
      });
    if (p.pc === 'entries' && !p.todo.length)
      add((t) => {
        if (p.conflict || t.ent[p.k].v !== p.v) at(t).pc = 'start';
        else finish(t);
      });
    if (p.pc !== 'entries') return;
    const settled = (t, val) => {
      at(t).todo = p.todo.filter((other) => other !== val);
      delete at(t).cur;
    };
    if (isPlain)
      for (const val of p.todo)
        check((t) => {
          const key = rk(val, p.k);
          const q = t.row[key];
          const isWanted = val === at(t).val;
          if (!isWanted && !q) return settled(t, val);
          if (isWanted && q && isBroken('norewrite')) return settled(t, val);
          const row = { owner: p.k, ok: true };
          const op = { do: isWanted ? 'put' : 'delete', key, entry: val, seen: q?.ver ?? 0, row, isSettling: true };
          return call(at(t), op, TICKS.settle);
        });
    else if (!p.cur)
      for (const val of p.todo)
        add((t) => {
          const q = t.row[val];
          const isOther = q?.claim && q.claim !== p.id && isLive(q);
          if (!q || q.owner !== p.k || isOther) return settled(t, val);
          at(t).cur = { entry: val, ver: q.ver, claim: q.claim };
          return undefined;
        });
    else
      check((t) => {
        const { entry, ver, claim } = p.cur;
        const isWanted = t.ent[p.k].val === entry;
        if (isWanted && !claim) return settled(t, entry);
        const row = { owner: p.k, ok: true };
        return call(
          at(t),
          { do: isWanted ? 'put' : 'delete', key: entry, entry, seen: ver, row, isSettling: true },
          TICKS.settle,
        );
      });
  };

  s.w.forEach((w, i) => {
    const W = (t) => t.w[i];
    const die = (t) => end(t, w);
    const mayCommit = w.age < TICKS.commit || isBroken('nocommitlimit');
    const mayClaim = w.age < TICKS.commit || isBroken('noclaimlimit');
    if (w.pc === 'read')
      add((t) => {
        const { v, val } = t.ent[w.k];
        if (val === w.e) return Object.assign(W(t), { pc: 'done' });
        const work = { id: `i${i}`, k: w.k, touched: ['b'] };
        const { u, rec } = push(t, { ...work, in: TICKS.hide });
        const pc = isPlain || !w.e ? 'commit' : 'claim';
        return Object.assign(W(t), { ...work, bv: v, intent: u, rec, age: 0, pc });
      });
    // A rejected writer ends its intent.
    const reject = (t) => {
      const q = w.claimed && t.row[w.e];
      if (q && !(q.ver === w.claimed && w.isNew)) return sendWork(t, w);
      if (q) delete t.row[w.e];
      remove(t, w.intent);
      return end(t, w);
    };
    if (w.pc === 'claim') {
      if (w.op)
        inFlight(W, {
          reply: (t, isDone, op) => {
            if (isDone) Object.assign(W(t), { pc: 'commit', claimed: t.row[w.e].ver, isNew: op.seen === 0 });
          },
          // An inserted claim is sent once: the writer looks for it. Broken: it is sent again, and lands twice.
          unanswered: (t, op) => {
            if (op.seen === 0 && !isBroken('resend')) W(t).isUncertain = true;
          },
          die,
        });
      else
        add((t) => {
          const q = t.row[w.e];
          if (q?.claim === w.id) return Object.assign(W(t), { pc: 'commit', claimed: q.ver });
          if (w.isUncertain) return end(t, w);
          if (q && (q.owner !== w.k || (q.claim && isLive(q)))) return reject(t);
          if (!mayClaim) return end(t, w);
          const row = { owner: w.k, ok: !!q?.ok, claim: w.id };
          return call(W(t), { do: 'claim', key: w.e, seen: q?.ver ?? 0, row, expires: TICKS.claim }, TICKS.commit);
        });
    }
    if (w.pc === 'commit') {
      if (w.op)
        inFlight(W, {
          reply: (t, isDone) => {
            if (!isDone) return reject(t);
            const cur = !isPlain && w.claimed ? { cur: { entry: w.e, ver: w.claimed, claim: w.id } } : {};
            const { v, val } = t.ent[w.k];
            return Object.assign(W(t), { pc: 'entries', v, val, todo: w.touched, isFresh: true, ...cur });
          },
          // Unknown to the caller, too. The intent stays hidden; broken: its work starts while the transaction may still land.
          unanswered: (t) => (isBroken('sendunknown') ? sendWork(t, w) : end(t, w)),
          die,
        });
      else
        add((t) => {
          if (!mayCommit) return reject(t);
          return call(W(t), { do: 'commit', k: w.k, seen: w.bv, val: w.e }, TICKS.commit);
        });
    }
    if (['start', 'entries'].includes(w.pc)) {
      reconcile(W, {
        check: (then) => {
          if (w.age < TICKS.settle || isBroken('nosettlelimit'))
            add((t) => {
              delete W(t).isFresh;
              then(t);
            });
          else add((t) => sendWork(t, w));
        },
        fail: (t) => (isBroken('sendunknown') ? sendWork(t, w) : end(t, w)),
        finish: (t) => {
          if (find(t, w.intent)?.rec === w.rec) remove(t, w.intent);
          end(t, w);
        },
        die,
      });
      // Too many entries.
      if (!w.op && w.isFresh) add((t) => sendWork(t, w));
    }
    if (isActive(w) && !w.op && s.crashes)
      add((t) => {
        end(t, w);
        t.crashes--;
      });
  });

  s.r.forEach((r, i) => {
    const R = (t) => t.r[i];
    const die = (t) => idle(t, i);
    if (r.pc === 'idle')
      // The host of a dead process never shows the message again: its reminder does.
      for (const m of s.msg.filter((one) => one.in === 0))
        add((t) => {
          remove(t, m.u);
          const work = { id: m.id, k: m.k, touched: m.touched };
          const begin = (hidden, age) => {
            t.r[i] = { pc: isBroken('countafter') ? 'begun' : 'start', ...work, hold: hidden.u, rec: hidden.rec, age };
          };
          if (!m.ref) return begin(push(t, { ...work, in: TICKS.hide }), 0);
          // The first delivery within the time of a hold that its sender began.
          if (m.age < TICKS.renew || isBroken('notimepassed'))
            return begin({ u: m.ref, rec: m.refRec }, isBroken('notimepassed') ? 0 : m.age);
          const hidden = hide(t, m.ref, m.refRec);
          return hidden && begin(hidden, 0);
        });
    // Broken: the time of the hold is measured from the reply.
    if (r.pc === 'begun')
      add((t) => {
        Object.assign(R(t), { pc: 'start', age: 0 });
      });
    if (['start', 'entries'].includes(r.pc))
      reconcile(R, {
        check: (then) => {
          if (r.age < TICKS.renew || isBroken('norenew')) add(then);
          else
            add((t) => {
              const hidden = hide(t, r.hold, r.rec);
              if (hidden) Object.assign(R(t), { rec: hidden.rec, age: 0 });
              else idle(t, i);
            });
        },
        // The work continues when the request cannot land any more.
        fail: (t) => {
          const postpone = isBroken('soon') ? 0 : TICKS.postpone;
          const hidden = hide(t, r.hold, r.rec, postpone + TICKS.hide);
          const { id, k, touched } = R(t);
          if (hidden) push(t, { id, k, touched, in: postpone, ref: hidden.u, refRec: hidden.rec, age: -postpone });
          idle(t, i);
        },
        finish: (t) => {
          if (find(t, r.hold)?.rec === r.rec) remove(t, r.hold);
          idle(t, i);
        },
        die,
      });
    if (r.pc !== 'idle' && !r.op && s.crashes)
      add((t) => {
        idle(t, i);
        t.crashes--;
      });
  });
  s.net.forEach((op, i) => {
    add((t) => {
      t.net.splice(i, 1);
      execute(t, op);
    });
  });
  const later = tick(s);
  if (later) out.push(later);
  return out;
}

/** States that differ only in their numbers are equal, so numbers are replaced by their ranks. */
const NUMBERS = new Set(['v', 'bv', 'ver', 'seen', 'u', 'rec', 'ref', 'refRec', 'hold', 'intent', 'claimed']);
const visitNumbers = (o, visit) => {
  for (const name in o) {
    if (NUMBERS.has(name)) visit(o, name);
    else if (o[name] !== null && typeof o[name] === 'object') visitNumbers(o[name], visit);
  }
};
const norm = (t) => {
  const values = new Set();
  visitNumbers(t, (o, name) => o[name] && values.add(o[name]));
  const rank = new Map([...values].sort((x, y) => x - y).map((v, i) => [v, i + 1]));
  visitNumbers(t, (o, name) => {
    if (o[name]) o[name] = rank.get(o[name]);
  });
  t.n = rank.size + 1;
  t.msg.sort((x, y) => x.u - y.u);
  t.net.sort((x, y) => (JSON.stringify(x) < JSON.stringify(y) ? -1 : 1));
  t.row = Object.fromEntries(Object.entries(t.row).sort());
  return t;
};

const isQuiet = (s) => !s.msg.length && !s.net.length && s.w.every(over) && s.r.every((r) => r.pc === 'idle');

function violationOf(s) {
  if (s.ent[0].val && s.ent[0].val === s.ent[1].val) return 'two entities hold one value';
  if (!isQuiet(s)) return undefined;
  for (const i of [0, 1]) {
    const { val } = s.ent[i];
    const q = val && s.row[rk(val, i)];
    if (val && !(q?.owner === i && q.ok)) return `entity ${i} holds ${val}, the index does not say so`;
  }
  for (const id in s.row) {
    if (s.ent[s.row[id].owner].val !== id[0]) return `index row ${id} left behind`;
    if (s.row[id].claim) return `a claim left on ${id}`;
  }
  return undefined;
}

const names = Object.keys(scripts).filter((name) => (only ? only === name : !isPlain || name !== 'T'));
printExplored(names, (name) =>
  exploreStates({
    first: norm(init(name, scripts[name])),
    nextStates: (s) => next(s).map((t) => [process.env.SHOW ? JSON.stringify(t) : '', norm(t), violationOf(t)]),
    isOver: (s) => (FUNCTIONS > 0 ? isQuiet(s) : s.w.every(over)),
    isDepthFirst: true,
    limit: LIMIT,
  }),
);
