import { expect, it } from 'vitest';
import { createKeptForms } from './kept-forms.ts';

const secret = Buffer.alloc(32, 7);
const use = { accountId: 'ada', path: '/projects/p' };
const values = new URLSearchParams({ form: 'archive', confirm: 'Sky & Sea', token: 't', password: 'p', repeated: 'r' });
const toHeader = (setCookie: string) => setCookie.split(';')[0]!;

it('a kept form returns the submitted values without passwords and tokens, and the cookie does not reveal them', () => {
  const kept = createKeptForms('https://portal.test', secret);
  const header = toHeader(kept.keep(values, use)!);
  expect(Object.fromEntries(kept.read(header, use)!)).toEqual({ form: 'archive', confirm: 'Sky & Sea' });
  expect(Buffer.from(header.split('=')[1]!, 'base64url').toString('latin1')).not.toContain('Sky');
});

it('a kept form is valid only for its account, page and secret, and for ten minutes', () => {
  let nowMs = 1_000_000;
  const kept = createKeptForms('https://portal.test', secret, () => nowMs);
  const header = toHeader(kept.keep(values, use)!);
  for (const other of [{ accountId: 'bob' }, { path: '/projects/q' }])
    expect(kept.read(header, { ...use, ...other })).toBeNull();
  const [name, value = ''] = header.split('=');
  expect(kept.read(`${name}=${value.slice(0, -1)}${value.endsWith('A') ? 'Q' : 'A'}`, use)).toBeNull();
  expect(createKeptForms('https://portal.test', Buffer.alloc(32, 8)).read(header, use)).toBeNull();
  nowMs += 599_000;
  expect(kept.read(header, use)).not.toBeNull();
  nowMs += 1_000;
  expect(kept.read(header, use)).toBeNull();
});

it('a form that does not fit into a cookie is not kept', () => {
  const kept = createKeptForms('https://portal.test', secret);
  expect(kept.keep(new URLSearchParams({ origins: 'x'.repeat(4000) }), use)).toBeNull();
});
