import { describe, expect, it } from 'vitest';
import { createBrowserCookie, createProviderCookie, createSessionCookie } from './cookies.ts';

const secret = Buffer.alloc(32, 1);
const text = 'a'.repeat(43);

describe('the cookie of a session', () => {
  it('is read back from what a browser sends of it, among those of others', () => {
    const cookie = createSessionCookie('https://portal.test', secret);
    const [pair = ''] = cookie.toSetCookie(text).split(';');
    expect(cookie.read(`theme=dark; ${pair}; other=1`)).toBe(text);
    expect(cookie.read(undefined)).toBeNull();
    expect(cookie.read(`${pair.split('=')[0]}=nonsense`)).toBeNull();
  });

  it('is bound to its host and hidden from scripts, and with http, which is for the own machine, kept all the same', () => {
    expect(createSessionCookie('https://portal.test', secret).toSetCookie(text)).toMatch(
      /^__Host-playline-[0-9a-f]{8}=a+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(createSessionCookie('http://localhost:1', secret).toSetCookie(text)).toMatch(
      /^playline-[0-9a-f]{8}=a+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/,
    );
  });

  it('is another one for another instance on the same host, and none when two places have set it', () => {
    const [ours, theirs] = [secret, Buffer.alloc(32, 2)].map((of) => createSessionCookie('http://localhost:1', of));
    const [pair = ''] = ours!.toSetCookie(text).split(';');
    expect(theirs!.read(pair)).toBeNull();
    expect(ours!.read(`${pair}; ${pair}`)).toBeNull();
  });
});

describe('the cookie of a browser that was sent to a provider', () => {
  it('is another one than that of a session, and holds 256 bits and the code of a link', () => {
    const way = createProviderCookie('https://portal.test', secret, 600);
    const [pair = ''] = way.toSetCookie(`${text}.code-of_a-link`).split(';');
    expect(way.toSetCookie(`${text}.`)).toMatch(
      /^__Host-playline-way-[0-9a-f]{8}=a+\.; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(way.read(pair)).toBe(`${text}.code-of_a-link`);
    expect(createSessionCookie('https://portal.test', secret).read(pair)).toBeNull();
    for (const wrong of [text, `${text}.a b`, `${text}.${'x'.repeat(101)}`])
      expect(way.read(`${pair.split('=')[0]}=${wrong}`)).toBeNull();
  });
});

describe('the cookie of a known browser', () => {
  const cookie = createBrowserCookie('https://portal.example', secret);
  const sent = cookie.toSetCookie('ada').split(';')[0]!;

  it('is known for its account alone, lasts half a year, and is kept from scripts and other sites', () => {
    expect(cookie.read(sent, 'ada')).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(cookie.read(sent, 'bob')).toBeNull();
    expect(cookie.toSetCookie('ada')).toMatch(/Max-Age=15552000; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
    expect(cookie.toSetCookie('ada').split(';')[0]).not.toBe(sent);
  });

  it('is not believed when it was changed, or signed by another portal', () => {
    const [name, value = ''] = sent.split('=');
    const [id = '', signature = ''] = value.split('.');
    const flipped = id.startsWith('A') ? `B${id.slice(1)}` : `A${id.slice(1)}`;
    expect(cookie.read(`${name}=${flipped}.${signature}`, 'ada')).toBeNull();
    expect(cookie.read(`${name}=${id}`, 'ada')).toBeNull();
    const other = createBrowserCookie('https://portal.example', Buffer.alloc(32, 8)).toSetCookie('ada').split(';')[0]!;
    expect(cookie.read(other.replace(/^[^=]*/, name!), 'ada')).toBeNull();
  });
});
