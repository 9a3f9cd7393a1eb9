// Executable specification of docs/consistency.md: visits every state of a tiny world (two entities, two writers, two queue functions,
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
// Broken rules: norecheck, early, inlinenorecheck (plain), rowlast (unique), noreminder, releasefirst (prompt), straggler (plain), othernoetag, releaseany, releasemark (unique, SCRIPT=W), which the test finds;
// noetag, noclaimguard, lateguard, inlinenoetag (unique) need more states than that.
const [kind, mode, broken = ''] = process.argv.slice(2);
// Entity 0 holds 'a' at the start. Two writers, one crash, two queue functions: small enough to visit every state.
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
};
const only = process.env.SCRIPT;
const CRASHES = Number(process.env.CRASHES ?? 1),
  FUNCTIONS = Number(process.env.FUNCTIONS ?? 2),
  LIMIT = Number(process.env.LIMIT ?? 4e6);
const clone = (s) => structuredClone(s),
  key = (s) => JSON.stringify(s);
const rk = (v, k) => (kind === 'unique' ? v : v + k);
const init = (script) => ({
  ent: [
    { v: 1, email: 'a' },
    { v: 0, email: null },
  ],
  row: { [rk('a', 0)]: { ver: 2, owner: 0, ok: true, claim: null } },
  n: 3,
  msg: [],
  w: script.map(([k, e]) => ({ pc: 'read', k, e })),
  r: Array.from({ length: FUNCTIONS }, () => ({ pc: 'idle' })),
  crashes: CRASHES,
});
const over = (w) => ['done', 'dead'].includes(w.pc);
// A claim is live while its writer may still commit.
const live = (s, id) => s.w.some((w) => w.id === id && ['claim', 'egt', 'release'].includes(w.pc));
// Holders: a writer holds its intent until it has sent the work or has ended; a function holds the message of its
// host and the reminder.
const isHeld = (s, m) =>
  s.w.some((w) => w.intent === m.u && !over(w)) ||
  s.r.some((r) => r.pc !== 'idle' && (r.host === m.u || r.hold === m.u));
const find = (t, u) => t.msg.find((m) => m.u === u);
const remove = (t, u) => {
  t.msg = t.msg.filter((m) => m.u !== u);
};

// The steps of a reconciler; `at` returns its state, `finish` is its last step.
function reconcile(s, at, add, finish, inline) {
  const r = at(s);
  if (r.pc === 'start')
    add((t) => {
      const e = t.ent[r.k];
      Object.assign(at(t), {
        v: e.v,
        email: e.email,
        todo: [...new Set([...r.touched, e.email].filter(Boolean))].sort(),
        pc: 'row',
      });
    });
  if (r.pc === 'row') {
    if (!r.todo.length)
      add((t) => {
        at(t).pc = broken === 'norecheck' || (inline && broken === 'inlinenorecheck') ? 'release' : 'again';
      });
    else
      add((t) => {
        const q = t.row[rk(r.todo[0], r.k)];
        if (
          kind === 'unique' &&
          q?.claim &&
          q.claim !== r.m &&
          live(t, q.claim) &&
          !['noclaimguard', 'lateguard'].includes(broken)
        ) {
          at(t).todo = r.todo.slice(1);
          return;
        } // a live claim of another intent: its own holder settles it; judged BEFORE the entity is read
        Object.assign(at(t), {
          seen: q ? q.ver : 0,
          q: q ? { ...q } : null,
          pc: kind === 'unique' && broken !== 'rowlast' ? 'ent' : 'act',
        });
      });
  }
  if (r.pc === 'ent')
    add((t) => {
      Object.assign(at(t), { email: t.ent[r.k].email, pc: 'act' });
    });
  if (r.pc === 'act')
    add((t) => {
      const val = r.todo[0],
        id = rk(val, r.k),
        want = r.email === val,
        q = r.q,
        now = t.row[id];
      const done = () => {
        const x = at(t);
        x.todo = x.todo.slice(1);
        x.pc = 'row';
        delete x.q;
        delete x.seen;
      };
      const again = () => {
        const x = at(t);
        x.pc = 'row';
        delete x.q;
        delete x.seen;
      };
      const same = broken === 'noetag' || (inline && broken === 'inlinenoetag') || (now ? now.ver : 0) === r.seen;
      if (kind === 'plain') {
        if (want === !!q) return done();
        if (!same) {
          at(t).pc = 'start';
          delete at(t).q;
          delete at(t).seen;
          return;
        }
        if (want) t.row[id] = { ver: ++t.n, owner: r.k, ok: true };
        else delete t.row[id];
        return done();
      }
      if (!q) return done();
      if (q.owner !== r.k) return done();
      if (broken === 'lateguard' && q.claim && q.claim !== r.m && live(s, q.claim)) return done();
      if (want && q.ok && !q.claim) return done();
      if (!same) return again();
      if (want) t.row[id] = { ver: ++t.n, owner: r.k, ok: true, claim: null };
      else delete t.row[id];
      done();
    });
  if (r.pc === 'again')
    add((t) => {
      at(t).pc = t.ent[r.k].v === r.v ? 'release' : 'start';
    });
  if (r.pc === 'release') add(finish);
}

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
      t.w[i] = { pc, k: w.k, e: w.e, id: w.id, intent: w.intent };
    };
    // The work goes to a queue function: a visible message that names the receipt of the intent, which stays hidden as its reminder.
    const sendWork = (t) => {
      const m = find(t, w.intent);
      if (m && broken === 'noreminder') m.vis = true;
      else if (m)
        t.msg.push({ u: ++t.n, id: w.id, k: w.k, touched: m.touched, vis: true, rec: 0, ref: m.u, refRec: m.rec });
      end(t, 'done');
    };
    if (w.pc === 'read')
      add((t) => {
        const e = t.ent[w.k];
        Object.assign(W(t), { bv: e.v, be: e.email, id: `i${i}`, pc: 'intent' });
        if (w.e === e.email) W(t).pc = 'done';
        if (w.e === 'same') W(t).pc = 'other';
      });
    // A change of a field that is in no index entry: under the ETag, without an intent.
    if (w.pc === 'other')
      add((t) => {
        if (t.ent[w.k].v === w.bv || broken === 'othernoetag') t.ent[w.k] = { v: ++t.n, email: w.be };
        W(t).pc = 'done';
      });
    if (w.pc === 'intent')
      add((t) => {
        const u = ++t.n;
        t.msg.push({
          u,
          id: w.id,
          k: w.k,
          touched: [...new Set([w.be, w.e].filter(Boolean))].sort(),
          vis: broken === 'early',
          rec: ++t.n,
        });
        Object.assign(W(t), { intent: u, pc: kind === 'unique' ? 'claim' : 'egt' });
      });
    if (w.pc === 'claim') {
      if (!w.e)
        add((t) => {
          W(t).pc = 'egt';
        });
      else {
        const q = s.row[w.e];
        const take = (t, row, isNew = false) => {
          t.row[w.e] = row;
          Object.assign(W(t), { pc: 'egt', claimed: { ...row }, isNew });
        };
        if (!q) add((t) => take(t, { ver: ++t.n, owner: w.k, ok: false, claim: w.id }, true));
        else if (q.owner === w.k && !(q.claim && q.claim !== w.id && live(s, q.claim)))
          add((t) => take(t, { ...q, ver: ++t.n, claim: w.id }));
        else
          add((t) => {
            W(t).pc = 'drop';
          });
      }
    }
    if (w.pc === 'egt')
      add((t) => {
        if (t.ent[w.k].v !== w.bv) {
          W(t).pc = w.claimed ? 'release' : 'drop';
          return;
        }
        const v = ++t.n;
        t.ent[w.k] = { v, email: w.e };
        // The writer settles inline: its commit replaces the first read of the entity, and its claim replaces the
        // read of the row.
        const touched = find(t, w.intent)?.touched ?? [w.be, w.e].filter(Boolean);
        const todo = [...touched].sort((x, y) => (y === w.e) - (x === w.e));
        const known = kind === 'unique' && w.claimed ? { pc: 'act', q: w.claimed, seen: w.claimed.ver } : { pc: 'row' };
        Object.assign(W(t), { pc: 'settle', in: { m: w.id, k: w.k, touched, v, email: w.e, todo, ...known } });
      });
    if (w.pc === 'settle') {
      reconcile(
        s,
        (t) => t.w[i].in,
        add,
        (t) => {
          remove(t, w.intent);
          end(t, 'done');
        },
        true,
      );
      // Too much work, or an error between two writes.
      add(sendWork);
      // Broken: another entity of the same intent is still being written when the work is sent.
      if (broken === 'straggler' && !w.sent)
        add((t) => {
          sendWork(t);
          t.w[i] = { ...clone(w), sent: true };
        });
    }
    // A rejected writer deletes the row that it inserted. It leaves a row that existed, or has changed, to a queue function.
    if (w.pc === 'release')
      add((t) => {
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
    if (w.pc === 'send') add(sendWork);
    if (!over(w) && w.pc !== 'read') die((t) => end(t, 'dead'));
  });
  s.msg.forEach((m, j) => {
    if (
      !m.vis &&
      !(mode === 'prompt' && m.received) &&
      ((mode === 'zombie' && !s.w.some((w) => w.intent === m.u && !over(w))) || !isHeld(s, m))
    )
      add((t) => {
        t.msg[j].vis = true;
      });
  });
  s.r.forEach((r, i) => {
    const R = (t) => t.r[i];
    if (r.pc === 'idle')
      s.msg.forEach((m) => {
        if (m.vis)
          add((t) => {
            Object.assign(find(t, m.u), { vis: false, rec: ++t.n, received: true });
            t.r[i] = { pc: 'take', host: m.u, m: m.id, k: m.k, touched: m.touched };
          });
      });
    if (r.pc === 'take')
      add((t) => {
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
    reconcile(
      s,
      R,
      add,
      (t) => {
        if (r.hold) remove(t, r.hold);
        R(t).pc = 'ack';
      },
      false,
    );
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
const numbers = (t) =>
  [
    ...t.ent.map((e) => [e, ['v']]),
    ...Object.values(t.row).map((r) => [r, ['ver']]),
    ...t.msg.map((m) => [m, ['u', 'rec', 'ref', 'refRec']]),
    ...t.w.flatMap((w) => [
      [w, ['bv', 'intent']],
      [w.claimed ?? {}, ['ver']],
      [w.in ?? {}, ['v', 'seen']],
      [w.in?.q ?? {}, ['ver']],
    ]),
    ...t.r.flatMap((r) => [
      [r, ['v', 'seen', 'host', 'hold']],
      [r.q ?? {}, ['ver']],
    ]),
  ].flatMap(([o, names]) => names.filter((n) => o[n] !== undefined && o[n] !== 0).map((n) => [o, n]));
// States that differ only in their numbers are equal, so numbers are replaced by their ranks.
const norm = (t) => {
  for (const w of t.w)
    if (over(w)) {
      delete w.intent;
    }
  const all = numbers(t),
    rank = new Map([...new Set(all.map(([o, n]) => o[n]))].sort((x, y) => x - y).map((v, i) => [v, i + 1]));
  for (const [o, n] of all) o[n] = rank.get(o[n]);
  t.n = rank.size + 1;
  t.msg.sort((x, y) => x.u - y.u);
  t.row = Object.fromEntries(Object.entries(t.row).sort());
  t.r.sort((x, y) => (key(x) < key(y) ? -1 : 1));
  return t;
};
const isStuck = (m) => mode === 'prompt' && m.received;
let bad = 0;
for (const [name, script] of Object.entries(scripts)) {
  if (only && only !== name) continue;
  const seen = new Set(),
    stack = [norm(init(script))];
  let quiet = 0,
    viol = null;
  while (stack.length && !viol && seen.size < LIMIT) {
    const s = stack.pop(),
      k = key(s);
    if (seen.has(k)) continue;
    seen.add(k);
    if (kind === 'unique' && s.ent[0].email && s.ent[0].email === s.ent[1].email) {
      viol = ['two entities hold one value', s];
      break;
    }
    if (s.msg.every(isStuck) && s.w.every(over) && s.r.every((r) => r.pc === 'idle')) {
      quiet++;
      for (const i of [0, 1]) {
        const e = s.ent[i];
        const r = e.email && s.row[rk(e.email, i)];
        if (e.email && !(r?.owner === i && r.ok)) viol = [`entity ${i} holds ${e.email}, the index does not say so`, s];
      }
      for (const id in s.row) {
        const r = s.row[id];
        if (s.ent[r.owner].email !== id[0]) viol = [`index row ${id} left behind`, s];
        else if (r.claim) viol = [`a claim left on ${id}`, s];
      }
    }
    for (const t of next(s)) stack.push(norm(t));
  }
  console.log(
    name,
    viol ? `VIOLATION ${viol[0]}` : 'ok',
    `states ${seen.size} quiescent ${quiet}${seen.size >= LIMIT ? ' (bounded)' : ''}`,
  );
  if (viol) {
    bad++;
    if (process.env.SHOW) console.log(key(viol[1]));
  }
}
process.exit(bad ? 1 : 0);
