import { readFileSync } from 'node:fs';

const TOOLS = ['curl', 'Python', 'R', 'Grafana', 'Metabase', 'Superset', 'dbt'] as const;
export type Tool = (typeof TOOLS)[number];

/** Where analysts connect to, with the environment of the page. */
export interface Connection {
  readonly url: string;
  readonly host: string;
  readonly port: string;
  readonly isSecure: boolean;
  readonly database: string;
  readonly environment: string;
}

export function toConnection(url: string, environment: string): Connection {
  const { hostname, port, protocol } = new URL(url);
  const isSecure = protocol === 'https:';
  // The row policies in users.xml apply to this database only.
  const database = 'playline';
  return { url, host: hostname, port: port || (isSecure ? '443' : '80'), isSecure, database, environment };
}

const TEXTS = TOOLS.map((tool) => {
  const file = new URL(`./snippets/${tool.toLowerCase()}.txt`, import.meta.url);
  return { tool, text: readFileSync(file, 'utf8').trimEnd() };
});

/** Fills in everything but the password, which snippets read from `CLICKHOUSE_PASSWORD`. */
export function toSnippets({ isSecure, ...values }: Connection, user: string): { tool: Tool; text: string }[] {
  const secure = String(isSecure);
  const all: Readonly<Record<string, string>> = { ...values, user, secure, Secure: isSecure ? 'True' : 'False' };
  return TEXTS.map(({ tool, text }) => ({
    tool,
    text: text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => all[name] ?? ''),
  }));
}
