/** Quotes a text as a ClickHouse literal. */
export const toText = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** Quotes a name as a ClickHouse identifier. */
export const toName = (name: string): string => `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``;
