import { Agent, request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { createSessionCookie } from '../frame/cookies.ts';

/** What a test sees of an answer. */
export interface Seen {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

/** A client that keeps the cookie and sends forms as a browser does: with the token that stands in them. */
export interface TestBrowser {
  get(path: string): Promise<Seen>;
  /** Looks at the page, and sends its form of that name. @throws Error when the page has none */
  submit(path: string, deed: string, values?: Readonly<Record<string, string>>): Promise<Seen>;
  /** Sends a form as it is, token included. */
  post(path: string, body: URLSearchParams, headers?: Readonly<Record<string, string>>): Promise<Seen>;
  /** The fields of a form of a page as they stand there; null when the page has none of that name. */
  formOf(page: string, deed: string): { readonly action: string; readonly fields: URLSearchParams } | null;
  /** Takes a session over. @param text as it stands in the cookie */
  keep(text: string): void;
  /** The cookie that it sends; '' for none. */
  readonly cookie: string;
}

/** As `openPortal` gives it to the portal. */
const SECRET = Buffer.alloc(32, 1);

/** As a browser sends a form. */
const FORM_HEADERS = {
  'content-type': 'application/x-www-form-urlencoded;charset=UTF-8',
  'sec-fetch-site': 'same-origin',
};

/** Of all browsers of a process. */
const CONNECTIONS = new Agent({ keepAlive: true });

interface Asked {
  readonly method?: 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** By `node:http`: with `fetch` three files of the portal's tests took a fifth more CPU time. */
function ask(url: string, { method, headers, body }: Asked): Promise<Seen> {
  return new Promise((done, fail) => {
    const asked = request(url, { agent: CONNECTIONS, headers, ...(method && { method }) }, (answer) => {
      const given = new Headers();
      for (const [name, values = []] of Object.entries(answer.headersDistinct))
        for (const value of values) given.append(name, value);
      textOf(answer).then((text) => done({ status: answer.statusCode ?? 0, text, headers: given }), fail);
    });
    asked.on('error', fail);
    asked.end(body);
  });
}

/** @param own headers that it sends with each request, such as those of a proxy in front */
export function createBrowser(origin: string, own: Readonly<Record<string, string>> = {}): TestBrowser {
  const cookies = new Map<string, string>();
  const keepCookie = (given: string) => {
    const [name = '', value = ''] = given.split(';')[0]!.split('=');
    if (given.includes('Max-Age=0')) cookies.delete(name);
    else cookies.set(name, value);
  };
  const see = async (path: string, asked: Asked): Promise<Seen> => {
    const seen = await ask(origin + path, asked);
    for (const given of seen.headers.getSetCookie()) keepCookie(given);
    return seen;
  };
  const toHeader = () => [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  // Uncompressed: compression on both sides was a sixth of the time of such tests.
  const sent = (): Record<string, string> => ({
    'accept-encoding': 'identity',
    ...own,
    ...(cookies.size === 0 ? {} : { cookie: toHeader() }),
  });
  const get = (path: string) => see(path, { headers: sent() });
  const post: TestBrowser['post'] = (path, body, headers = {}) =>
    see(path, {
      method: 'POST',
      headers: { ...sent(), ...FORM_HEADERS, origin, ...headers },
      body: body.toString(),
    });
  return {
    get,
    post,
    formOf,
    keep: (text) => keepCookie(createSessionCookie(origin, SECRET).toSetCookie(text)),
    submit: async (path, deed, values = {}) => {
      const page = await get(path);
      const form = formOf(page.text, deed);
      if (form === null) throw new Error(`${path} has no form ${deed}: ${page.status} ${page.text.slice(0, 2000)}`);
      for (const [name, value] of Object.entries(values)) form.fields.set(name, value);
      return post(form.action, form.fields);
    },
    get cookie() {
      return toHeader();
    },
  };
}

function formOf(page: string, deed: string): ReturnType<TestBrowser['formOf']> {
  for (const [, action = '', content = ''] of page.matchAll(/<form [^>]*action="([^"]*)">(.*?)<\/form>/gs)) {
    const inputs = [...content.matchAll(/<input [^>]*>/g)].flatMap(([input]): [string, string][] => {
      const isChosen = !/type="(checkbox|radio)"/.test(input) || / checked/.test(input);
      return isChosen ? [[attributeOf(input, 'name'), attributeOf(input, 'value')]] : [];
    });
    const chosen = [...content.matchAll(/<select [^>]*name="([^"]*)">(.*?)<\/select>/gs)].map(
      ([, name = '', options = '']): [string, string] => {
        const [option = ''] = /<option [^>]*selected>/.exec(options) ?? /<option [^>]*>/.exec(options) ?? [];
        return [name, attributeOf(option, 'value')];
      },
    );
    const fields = new URLSearchParams([...inputs, ...chosen]);
    if (fields.get('deed') === deed) return { action: toText(action), fields };
  }
  return null;
}

const attributeOf = (element: string, name: string) =>
  toText(new RegExp(` ${name}="([^"]*)"`).exec(element)?.[1] ?? '');

function toText(text: string): string {
  const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? '');
}
