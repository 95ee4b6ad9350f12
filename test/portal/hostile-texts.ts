/** Wider than any screen, without a line break. */
const LONG = 'w'.repeat(2_000);

/** Texts that become markup, script or an address when not escaped, by their kind. */
export const HOSTILE: Readonly<Record<string, string>> = {
  'a script': '<script>parent.taken=1</script>',
  'the end of a script': '</script><script>taken()</script>',
  'an attribute of another element': '" onfocus="taken()" autofocus="',
  'an attribute in single quotes': "' onmouseover='taken()' x='",
  'the end of a title': '</title><img src=x onerror=taken()>',
  'the end of a text area': '</textarea></select></template><svg onload=taken()>',
  'a link that runs': 'javascript:taken()',
  entities: '&lt;script&gt;taken()&lt;/script&gt; &#x3c;b&#x3e; &quot;&amp;amp;',
  'an open comment': '--><img src=x onerror=taken()><!--',
  'another base': '<base href="//evil.test/"><meta http-equiv=refresh content="0;url=//evil.test">',
  'the end of a line of headers': 'x\r\nset-cookie: taken=1\r\n\r\n<b>body</b>',
  'an event of a stream': 'x\n\nevent: taken\ndata: {"taken":1}\n\n',
  'an event of a stream by carriage returns': 'x\r\rdata: taken\r\rid: 7\r\r',
  'separators of lines': 'x\u2028y\u2029z\u0085',
  'from right to left': 'user\u202egpj.exe\u202c \u2066x\u2069',
  'no character': 'x\u0000y\u0000<b\u0000>',
  'control characters': 'x\u0001\u0007\u0008\u001b[31mred\u007f',
  'half a character': 'x\ud800y',
  'a name of every object': '__proto__',
  'the constructor of every object': 'constructor',
  'very long': LONG,
  'another address': '//evil.test/%2e%2e',
  'a formula of a sheet': '=HYPERLINK("//evil.test","taken")',
  'nothing but spaces': '   ',
};
