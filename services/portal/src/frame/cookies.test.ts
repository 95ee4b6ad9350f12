import { expect, it } from 'vitest';
import { createBrowserCookie, createProviderCookie, createSessionCookie } from './cookies.ts';

const secret = Buffer.alloc(32, 1);
const text = 'a'.repeat(43);

it('the session cookie is read from a header with other cookies', () => {
  const cookie = createSessionCookie('https://portal.test', secret);
  const [pair = ''] = cookie.toSetCookie(text).split(';');
  expect(cookie.read(`theme=dark; ${pair}; other=1`)).toBe(text);
  expect(cookie.read(undefined)).toBeNull();
  expect(cookie.read(`${pair.split('=')[0]}=nonsense`)).toBeNull();
});

it('the session cookie is bound to its host and hidden from scripts; over http it has no Secure attribute', () => {
  expect(createSessionCookie('https://portal.test', secret).toSetCookie(text)).toMatch(
    /^__Host-playline-[0-9a-f]{8}=a+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  );
  expect(createSessionCookie('http://localhost:1', secret).toSetCookie(text)).toMatch(
    /^playline-[0-9a-f]{8}=a+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/,
  );
});

it('the session cookie of another instance on the same host is ignored, and a duplicate counts as none', () => {
  const cookie = createSessionCookie('http://localhost:1', secret);
  const [pair = ''] = cookie.toSetCookie(text).split(';');
  expect(createSessionCookie('http://localhost:1', Buffer.alloc(32, 2)).read(pair)).toBeNull();
  expect(cookie.read(`${pair}; ${pair}`)).toBeNull();
});

it('the provider cookie is separate from the session cookie and holds 256 bits and the code of a link', () => {
  const cookie = createProviderCookie('https://portal.test', secret, 600);
  const [pair = ''] = cookie.toSetCookie(`${text}.code-of_a-link`).split(';');
  expect(cookie.toSetCookie(`${text}.`)).toMatch(
    /^__Host-playline-way-[0-9a-f]{8}=a+\.; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  );
  expect(cookie.read(pair)).toBe(`${text}.code-of_a-link`);
  expect(createSessionCookie('https://portal.test', secret).read(pair)).toBeNull();
  for (const wrong of [text, `${text}.a b`, `${text}.${'x'.repeat(101)}`])
    expect(cookie.read(`${pair.split('=')[0]}=${wrong}`)).toBeNull();
});

const cookie = createBrowserCookie('https://portal.example', secret);
const sent = cookie.toSetCookie('ada').split(';')[0]!;

it('the browser cookie is valid for its account only, lasts half a year and is hidden from scripts and other sites', () => {
  expect(cookie.read(sent, 'ada')).toMatch(/^[A-Za-z0-9_-]{22}$/);
  expect(cookie.read(sent, 'bob')).toBeNull();
  expect(cookie.toSetCookie('ada')).toMatch(/Max-Age=15552000; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
  expect(cookie.toSetCookie('ada').split(';')[0]).not.toBe(sent);
});

it('a changed browser cookie and one of another portal are ignored', () => {
  const [name, value = ''] = sent.split('=');
  const [id = '', signature = ''] = value.split('.');
  const flipped = id.startsWith('A') ? `B${id.slice(1)}` : `A${id.slice(1)}`;
  expect(cookie.read(`${name}=${flipped}.${signature}`, 'ada')).toBeNull();
  expect(cookie.read(`${name}=${id}`, 'ada')).toBeNull();
  const other = createBrowserCookie('https://portal.example', Buffer.alloc(32, 8)).toSetCookie('ada').split(';')[0]!;
  expect(cookie.read(other.replace(/^[^=]*/, name!), 'ada')).toBeNull();
});
