/** Reads the parameters of a command, such as `param_since=2026-06-08`. */
export const readParams = (command) =>
  Object.fromEntries([...command.matchAll(/[?&]param_(\w+)=([^&"]*)/g)].map(([, name, value]) => [name, value]));

const quote = (text) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** Replaces the parameters of a query with values. A parameter without a value is unchanged. */
export function fillQuery(query, params) {
  return query.replaceAll(/\{(\w+): (\w+)\}/g, (parameter, name, type) => {
    const value = params[name];
    if (value === undefined || value === '') return parameter;
    if (type === 'Date') return `toDate(${quote(value)})`;
    return /^U?Int\d+$/.test(type) && /^-?\d+$/.test(value) ? value : quote(value);
  });
}

const quoteForShell = (text) => (/^[\w.:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Replaces the values of parameters and the user in a command, encoded for the URL of curl or quoted for the shell. */
export function fillCommand(command, params, user) {
  const name = user || 'analyst';
  const withUser = command
    .replace(/(-u ")analyst\b/, (_, prefix) => prefix + encodeURIComponent(name))
    .replace(/(--user )analyst\b/, (_, prefix) => prefix + quoteForShell(name));
  return withUser.replaceAll(/(--|\b)param_(\w+)=([^&"\s]*)/g, (_, option, parameter, value) => {
    const wanted = params[parameter] || decodeURIComponent(value);
    return `${option}param_${parameter}=${option === '' ? encodeURIComponent(wanted).replaceAll("'", '%27') : quoteForShell(wanted)}`;
  });
}
