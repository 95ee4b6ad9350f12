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

/** Replaces the values of parameters and the user in a command. Values that a shell could interpret are percent-encoded. */
export function fillCommand(command, params, user) {
  const withUser = command.replace(
    /(-u "|--user )analyst\b/,
    (_, prefix) => prefix + encodeURIComponent(user || 'analyst'),
  );
  return withUser.replaceAll(/\bparam_(\w+)=([^&"\s]*)/g, (_, name, value) => {
    const wanted = params[name];
    return `param_${name}=${wanted === undefined || wanted === '' ? value : encodeURIComponent(wanted).replaceAll("'", '%27')}`;
  });
}
