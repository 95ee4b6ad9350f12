import { Agent, request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { createSessionCookie } from '../frame/cookies.ts';

export interface Response {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

/** An HTTP client that stores cookies and submits forms with their tokens. */
export interface TestBrowser {
  get(path: string): Promise<Response>;
  /** Loads a page and submits the form named `form`. @throws Error if the page has no such form */
  submit(path: string, form: string, values?: Readonly<Record<string, string>>): Promise<Response>;
  /** Posts a form body, which must include the token. */
  post(path: string, body: URLSearchParams, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** Returns the fields of a form with their current values; null if the page has no such form. */
  formOf(page: string, form: string): { readonly action: string; readonly fields: URLSearchParams } | null;
  /** Continues the session with this session token. */
  resumeSession(token: string): void;
  readonly cookie: string;
}

/** The `PORTAL_SECRET` that `openPortal` uses. */
const SECRET = Buffer.alloc(32, 1);

const FORM_HEADERS = {
  'content-type': 'application/x-www-form-urlencoded;charset=UTF-8',
  'sec-fetch-site': 'same-origin',
};

const CONNECTIONS = new Agent({ keepAlive: true });

interface RequestParts {
  readonly method?: 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Uses `node:http`, because `fetch` uses 20 % more CPU time. */
function send(url: string, { method, headers, body }: RequestParts): Promise<Response> {
  return new Promise((done, fail) => {
    const outgoing = request(url, { agent: CONNECTIONS, headers, ...(method && { method }) }, (response) => {
      const received = new Headers();
      for (const [name, values = []] of Object.entries(response.headersDistinct))
        for (const value of values) received.append(name, value);
      textOf(response).then((text) => done({ status: response.statusCode ?? 0, text, headers: received }), fail);
    });
    outgoing.on('error', fail);
    outgoing.end(body);
  });
}

/** @param defaultHeaders sent with every request, such as proxy headers */
export function createBrowser(origin: string, defaultHeaders: Readonly<Record<string, string>> = {}): TestBrowser {
  const cookies = new Map<string, string>();
  const storeCookie = (setCookie: string) => {
    const [, name = '', value = ''] = /^([^=]*)=([^;]*)/.exec(setCookie) ?? [];
    if (setCookie.includes('Max-Age=0')) cookies.delete(name);
    else cookies.set(name, value);
  };
  const exchange = async (path: string, parts: RequestParts): Promise<Response> => {
    const response = await send(origin + path, parts);
    for (const setCookie of response.headers.getSetCookie()) storeCookie(setCookie);
    return response;
  };
  const toHeader = () => [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  // Without compression, the tests take a sixth less time.
  const headersOf = (): Record<string, string> => ({
    'accept-encoding': 'identity',
    ...defaultHeaders,
    ...(cookies.size === 0 ? {} : { cookie: toHeader() }),
  });
  const get = (path: string) => exchange(path, { headers: headersOf() });
  const post: TestBrowser['post'] = (path, body, headers = {}) =>
    exchange(path, {
      method: 'POST',
      headers: { ...headersOf(), ...FORM_HEADERS, origin, ...headers },
      body: body.toString(),
    });
  return {
    get,
    post,
    formOf,
    resumeSession: (token) => storeCookie(createSessionCookie(origin, SECRET).toSetCookie(token)),
    submit: async (path, form, values = {}) => {
      const page = await get(path);
      const found = formOf(page.text, form);
      if (found === null) throw new Error(`${path} has no form ${form}: ${page.status} ${page.text.slice(0, 2000)}`);
      for (const [name, value] of Object.entries(values)) found.fields.set(name, value);
      return post(found.action, found.fields);
    },
    get cookie() {
      return toHeader();
    },
  };
}

function formOf(page: string, form: string): ReturnType<TestBrowser['formOf']> {
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
    if (fields.get('form') === form) return { action: toText(action), fields };
  }
  return null;
}

const attributeOf = (element: string, name: string) =>
  toText(new RegExp(` ${name}="([^"]*)"`).exec(element)?.[1] ?? '');

function toText(text: string): string {
  const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? '');
}
