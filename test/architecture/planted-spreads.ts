/** Lists of any length in the arguments of a call, each in one file of the tree without breaches. */
export const SPREAD_LINES: { because: string; path: string; lines: string; rule: string }[] = [
  {
    because: 'rows are pushed by a spread',
    path: 'services/gateway/src/app.ts',
    lines: 'export const add = (all: number[], rows: number[]) => all.push(...rows);',
    rule: 'spreads',
  },
  {
    because: 'an extreme of rows is found by a spread',
    path: 'packages/people/src/index.ts',
    lines: 'export const latest = (rows: { at: number }[]) => Math.max(0, ...rows.map(({ at }) => at));',
    rule: 'spreads',
  },
  {
    because: 'keys are spread into a command of Redis',
    path: 'packages/people/src/redis/index.ts',
    lines: 'export const read = (redis: R, keys: string[]) => redis.mget(...keys);',
    rule: 'spreads',
  },
  {
    because: 'a literal hides a spread list',
    path: 'infra/local/index.ts',
    lines: "export const show = (parts: string[]) => console.log(...['shown', ...parts]);",
    rule: 'spreads',
  },
  {
    because: 'members are packed into a spread literal',
    path: 'packages/people/src/index.ts',
    lines: 'export const place = (a: number, b: number) => ({ ...{ a, b }, c: 1 });',
    rule: 'packing',
  },
];
