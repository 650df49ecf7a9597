<?php
// Extensions are loaded with RTLD_DEEPBIND: what they allocate and what PHP frees must be of one malloc.
$rows = [];
for ($i = 0; $i < 60000; $i++) $rows["k" . ($i * 7919 % 60013)] = str_repeat(chr(65 + $i % 26), $i % 120);
ksort($rows);
echo count($rows), " ", md5(implode(",", $rows)), "\n";
$db = new PDO("sqlite::memory:");
$db->exec("create table t (a integer, b text)");
$insert = $db->prepare("insert into t values (?, ?)");
for ($i = 0; $i < 5000; $i++) $insert->execute([$i, md5((string) $i)]);
echo json_encode($db->query("select count(*), sum(a), max(b) from t")->fetch(PDO::FETCH_NUM)), "\n";
$document = new DOMDocument();
$document->loadXML("<r>" . str_repeat("<e a='1'>text</e>", 5000) . "</r>");
echo $document->getElementsByTagName("e")->length, " ", strlen($document->saveXML()), "\n";
echo mb_strtoupper(mb_substr(str_repeat("grün ", 1000), 0, 20)), "\n";
echo strlen(gzcompress(serialize($rows), 6)) > 1000 ? "packed" : "not packed", "\n";
preg_match_all('/(a+)(b+)?/i', implode(",", $rows), $found);
echo count($found[0]), "\n";
foreach ((function () { for ($i = 0; $i < 1000; $i++) yield $i => new ArrayObject(range(0, $i % 30)); })() as $k => $v) $last = $v;
echo count($last), "\ndone\n";
