import { describe, expect, it } from 'vitest';
import { createSessionCookie, createWayCookie } from './cookies.ts';

const secret = Buffer.alloc(32, 1);
const text = 'a'.repeat(43);

describe('the cookie of a session', () => {
  it('is read back from what a browser sends of it, among those of others', () => {
    const cookie = createSessionCookie('https://portal.test', secret);
    const [pair = ''] = cookie.give(text).split(';');
    expect(cookie.read(`theme=dark; ${pair}; other=1`)).toBe(text);
    expect(cookie.read(undefined)).toBeNull();
    expect(cookie.read(`${pair.split('=')[0]}=nonsense`)).toBeNull();
  });

  it('is bound to its host and hidden from scripts, and with http, which is for the own machine, kept all the same', () => {
    expect(createSessionCookie('https://portal.test', secret).give(text)).toMatch(
      /^__Host-playline-[0-9a-f]{8}=a+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(createSessionCookie('http://localhost:1', secret).give(text)).toMatch(
      /^playline-[0-9a-f]{8}=a+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/,
    );
  });

  it('is another one for another instance on the same host, and none when two places have set it', () => {
    const [ours, theirs] = [secret, Buffer.alloc(32, 2)].map((of) => createSessionCookie('http://localhost:1', of));
    const [pair = ''] = ours!.give(text).split(';');
    expect(theirs!.read(pair)).toBeNull();
    expect(ours!.read(`${pair}; ${pair}`)).toBeNull();
  });
});

describe('the cookie of a browser that was sent to a provider', () => {
  it('is another one than that of a session, and holds 256 bits and the code of a link', () => {
    const way = createWayCookie('https://portal.test', secret, 600);
    const [pair = ''] = way.give(`${text}.code-of_a-link`).split(';');
    expect(way.give(`${text}.`)).toMatch(
      /^__Host-playline-way-[0-9a-f]{8}=a+\.; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(way.read(pair)).toBe(`${text}.code-of_a-link`);
    expect(createSessionCookie('https://portal.test', secret).read(pair)).toBeNull();
    for (const wrong of [text, `${text}.a b`, `${text}.${'x'.repeat(101)}`])
      expect(way.read(`${pair.split('=')[0]}=${wrong}`)).toBeNull();
  });
});
