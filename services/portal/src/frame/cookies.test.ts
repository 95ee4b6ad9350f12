import { expect, it } from 'vitest';
import { createBrowserCookie, createProviderCookie, createSessionCookie } from './cookies.ts';

const secret = Buffer.alloc(32, 1);
const token = 'a'.repeat(43);

it('the session cookie is found among other cookies', () => {
  const cookie = createSessionCookie('https://portal.test', secret);
  const [pair = ''] = cookie.toSetCookie(token).split(';');
  expect(cookie.read(`theme=dark; ${pair}; other=1`)).toBe(token);
  expect(cookie.read(undefined)).toBeNull();
  expect(cookie.read(`${pair.split('=')[0]}=nonsense`)).toBeNull();
});

it('the session cookie is bound to its host, hidden from scripts and Secure over https', () => {
  expect(createSessionCookie('https://portal.test', secret).toSetCookie(token)).toMatch(
    /^__Host-playline-[0-9a-f]{8}=a+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  );
  expect(createSessionCookie('http://localhost:1', secret).toSetCookie(token)).toMatch(
    /^playline-[0-9a-f]{8}=a+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/,
  );
});

it('session cookies from other instances and duplicate session cookies are ignored', () => {
  const cookie = createSessionCookie('http://localhost:1', secret);
  const [pair = ''] = cookie.toSetCookie(token).split(';');
  expect(createSessionCookie('http://localhost:1', Buffer.alloc(32, 2)).read(pair)).toBeNull();
  expect(cookie.read(`${pair}; ${pair}`)).toBeNull();
});

it('the provider cookie contains a 256-bit value and a link code, and is separate from the session cookie', () => {
  const cookie = createProviderCookie('https://portal.test', secret, 600);
  const [pair = ''] = cookie.toSetCookie(`${token}.code-of_a-link`).split(';');
  expect(cookie.toSetCookie(`${token}.`)).toMatch(
    /^__Host-playline-way-[0-9a-f]{8}=a+\.; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  );
  expect(cookie.read(pair)).toBe(`${token}.code-of_a-link`);
  expect(createSessionCookie('https://portal.test', secret).read(pair)).toBeNull();
  for (const invalid of [token, `${token}.a b`, `${token}.${'x'.repeat(101)}`])
    expect(cookie.read(`${pair.split('=')[0]}=${invalid}`)).toBeNull();
});

const cookie = createBrowserCookie('https://portal.example', secret);
const header = cookie.toSetCookie('ada').split(';')[0]!;

it('the browser cookie is bound to its account, valid for 180 days and hidden from scripts', () => {
  expect(cookie.read(header, 'ada')).toMatch(/^[A-Za-z0-9_-]{22}$/);
  expect(cookie.read(header, 'bob')).toBeNull();
  expect(cookie.toSetCookie('ada')).toMatch(/Max-Age=15552000; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
  expect(cookie.toSetCookie('ada').split(';')[0]).not.toBe(header);
});

it('modified browser cookies and browser cookies from other portals are ignored', () => {
  const [name, value = ''] = header.split('=');
  const [id = '', signature = ''] = value.split('.');
  const flipped = id.startsWith('A') ? `B${id.slice(1)}` : `A${id.slice(1)}`;
  expect(cookie.read(`${name}=${flipped}.${signature}`, 'ada')).toBeNull();
  expect(cookie.read(`${name}=${id}`, 'ada')).toBeNull();
  const other = createBrowserCookie('https://portal.example', Buffer.alloc(32, 8)).toSetCookie('ada').split(';')[0]!;
  expect(cookie.read(other.replace(/^[^=]*/, name!), 'ada')).toBeNull();
});
