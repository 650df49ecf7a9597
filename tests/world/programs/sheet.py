"""A sheet of numbers, words and formulas."""

print("number,word,formula")
for row in range(2, 4000):
    print(f"{row * 7919 % 10007},word {row * 31 % 977},=A{row}*2+{row}")
